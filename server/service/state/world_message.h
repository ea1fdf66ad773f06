// The world of a pipeline, as requests, answers and the files of the state folder say it.
//
// Threads: safe from any thread.
#pragma once

#include <cstdint>

#include "server/engine/tensor/world.h"

namespace penstock {

// What the message says, as it is: whether it is a world, MakePlan() tells. Without one this host
// makes all rows.
template <typename Message>
World WorldIn(const Message& message) {
  if (!message.has_world()) return {};
  return {message.world().hosts(), message.world().host()};
}

// For how few hosts the ring of a creation has room; 0: nobody has said it.
template <typename Message>
uint32_t FewestHostsIn(const Message& message) {
  return message.world().fewest_hosts();
}

// Where there are several hosts.
template <typename Message>
void SetWorld(World world, Message* message) {
  if (world.is_alone()) return;
  message->mutable_world()->set_hosts(world.hosts);
  message->mutable_world()->set_host(world.host);
}

}  // namespace penstock
