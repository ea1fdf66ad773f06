// What is told of those who make steps of a stream on other hosts.
//
// Threads:  values.
#pragma once

#include <cstdint>
#include <string>

namespace penstock {

// One of them, for whoever watches.
struct HelperStats {
  std::string address;
  std::string state;        // "connecting", "ready", "resting", "left out"
  std::string reason;       // why it is left out; "" where it is not
  uint32_t steps_away = 0;  // that it has now
  uint64_t steps = 0;       // that it has made
  uint64_t bytes = 0;       // of them
  uint64_t given_back = 0;  // that were made by others, as it was too late, or gone
  uint64_t left_out = 0;    // how often it was
  uint64_t step_ns = 0;     // how long one takes from asking to the last byte, lately
};

}  // namespace penstock
