#include "server/service/pipeline/group_lists.h"

#include <algorithm>

#include "base/nanoseconds.h"
#include "server/service/state/slow_policy.h"

namespace penstock {
namespace {

const char* ModeName(ring::GroupMode mode) {
  switch (mode) {
    case ring::GroupMode::kBroadcast:
      return "broadcast";
    case ring::GroupMode::kRank:
      return "rank";
    case ring::GroupMode::kSplit:
      return "split";
  }
  return "";
}

void AddConsumers(const ring::Writer& writer, GroupList* groups) {
  const uint64_t published = writer.published();
  for (const ring::ConsumerStats& consumer : writer.Consumers()) {
    const bool is_first = !groups->contains(consumer.group);
    v1::GroupStats& group = (*groups)[consumer.group];
    group.set_name(consumer.group);
    group.set_leases(group.leases() + consumer.leases);
    group.set_missed(group.missed() + consumer.skipped);
    if (is_first) group.set_first_position(UINT64_MAX);
    // Who catches up by itself is alone in its ring, whatever its group is.
    if (is_first || consumer.mode != ring::GroupMode::kBroadcast) {
      group.set_mode(ModeName(consumer.mode));
      group.set_world_size(consumer.mode == ring::GroupMode::kRank ? consumer.world_size : 0);
    }
    if (consumer.detached || consumer.left) continue;
    group.set_consumers(group.consumers() + 1);
    const uint64_t position = consumer.mode == ring::GroupMode::kSplit
                                  ? published - std::min(published, consumer.lag)
                                  : consumer.position;
    group.set_first_position(std::min(group.first_position(), position));
    group.set_last_position(std::max(group.last_position(), position));
    group.set_lag(std::max(group.lag(), consumer.lag));
  }
}

}  // namespace

void AddGroups(const ring::Writer& writer, GroupList* groups) {
  AddConsumers(writer, groups);
  for (const ring::GroupStats& one : writer.Groups()) {
    v1::GroupStats& group = (*groups)[one.name];
    group.set_name(one.name);
    group.set_mode(ModeName(one.mode));
    group.set_missing(one.missing);
    if (one.uid != UINT32_MAX) group.set_uid(one.uid);
    if (one.world_size > 0) group.set_world_size(one.world_size);
    group.set_kept(one.is_kept);
    group.set_kept_ms(static_cast<uint32_t>(one.kept_ns / kNsPerMs));
    if (!one.is_kept) continue;
    group.set_first_position(one.position);
    group.set_last_position(one.position);
    group.set_lag(one.available);
  }
  for (const ring::HoldUpStats& one : writer.HoldUps()) {
    v1::GroupStats& group = (*groups)[one.group];
    group.set_holds_up_ms(
        std::max(group.holds_up_ms(), static_cast<uint32_t>(one.held_ns / kNsPerMs + 1)));
  }
}

void AddWaitedFor(const ring::Writer& writer, v1::PipelineStats* stats) {
  for (const ring::HoldUpStats& one : writer.HoldUps()) {
    v1::WaitedFor* const out = stats->add_waited_for();
    out->set_group(one.group);
    out->set_mode(ModeName(one.mode));
    if (one.uid != UINT32_MAX) out->set_uid(one.uid);
    out->set_consumer(one.consumer);
    out->set_pid(one.pid);
    out->set_missing(one.missing);
    out->set_first_missing_rank(one.first_missing);
    out->set_world_size(one.world_size);
    out->set_seconds(1e-9 * static_cast<double>(one.held_ns));
    if (one.most_ns) out->set_most_seconds(1e-9 * static_cast<double>(*one.most_ns));
  }
}

}  // namespace penstock
