// Those who compute an op's rows elsewhere, where they are processes of its own: for statistics and
// traces.
//
// Threads:  values.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace penstock {

struct AwayWorkers {
  uint32_t workers = 0;       // processes that there are
  uint32_t most_workers = 0;  // and that there may be
  bool is_chosen = false;     // how many there are to be, by what is to be done
  bool is_unoffered = false;  // rows wait for a process that starts them, for oldest_row_ns
  int16_t offers = -1;        // processes of the user that do; -1: the daemon does
  uid_t user = 0;             // whose processes they are
  uint64_t rows = 0;          // that they have made
  uint64_t busy_ns = 0;       // that they were at rows, all together
  uint64_t oldest_row_ns =
      0;  // how long the row takes that has taken longest so far; 0: none is at work
  uint64_t loading_ns = 0;    // for how long one of them has loaded its function; 0: none does
  uint64_t started = 0;       // processes, since the op began
  uint64_t deaths = 0;        // of those, the ones that a row has ended, or the system
  uint64_t memory_bytes = 0;  // of all processes, what they do not share
};

// What one of them did.
struct AwaySpan {
  uint64_t begin_ns = 0;  // MonotonicNanos()
  uint64_t end_ns = 0;
  uint32_t rows = 0;
  int process = 0;
};

}  // namespace penstock
