// Those who compute an op's rows elsewhere, where they are processes of its own: for statistics and
// traces.
//
// Threads:  values.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace penstock {

struct AwayWorkers {
  uint32_t workers = 0;       // processes that there are
  uint32_t most_workers = 0;  // and that there may be
  bool is_chosen = false;     // how many there are to be, by what is to be done
  uint64_t rows = 0;          // that they have made
  uint64_t busy_ns = 0;       // that they were at rows, all together
  uint64_t oldest_row_ns =
      0;                 // how long the row takes that has taken longest so far; 0: none is at work
  uint64_t started = 0;  // processes, since the op began
  uint64_t deaths = 0;   // of those, the ones that a row has ended, or the system
  uint64_t memory_bytes = 0;  // of all processes, what they do not share
  uid_t user = 0;             // whose processes they are
  // Processes of that user that offer to start them; absent where the daemon does. And for how long rows have waited since there is none.
  std::optional<uint32_t> offers = std::nullopt;
  uint64_t unoffered_ns = 0;
};

// What one of them did.
struct AwaySpan {
  uint64_t begin_ns = 0;  // MonotonicNanos()
  uint64_t end_ns = 0;
  uint32_t rows = 0;
  int process = 0;
};

}  // namespace penstock
