// Tells a daemon that takes long over an answer from one that stands still: while the answer is
// waited for, a connection beside it asks whether the daemon is at work, which its event loop
// answers at once.
//
// Threads:  one; no state but its own.
// Owns:     the connection beside, of which there is never more than one.
// Limits:   it asks four times within the time that may pass without a sign. Time in which this
//           process itself stood still does not count.
#pragma once

#include <cstdint>
#include <string>

#include "ring/descriptor.h"

namespace penstock_client {

class SignsOfLife {
 public:
  // Of the daemon at `socket_path`, that has just been asked for something.
  SignsOfLife(std::string socket_path, uint64_t silence_ns_max);

  // Waits a tenth of a second at most; true once there is something to read at `socket`.
  bool Wait(int socket);
  // Whether nothing has been heard of the daemon for too long.
  bool missing() const { return silence_ns_ >= silence_ns_max_; }

 private:
  void Ask();
  void Hear();

  const std::string socket_path_;
  const uint64_t silence_ns_max_;
  uint64_t silence_ns_ = 0;
  uint64_t seen_ns_;                   // up to where silence has been counted
  penstock::ring::Descriptor beside_;  // while a probe is under way
};

}  // namespace penstock_client
