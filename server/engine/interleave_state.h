// The state of an interleave of files after a number of records, by arithmetic on the files' record counts.
//
//   cycle     slot 0 │ slot 1 │ … │ slot cycle_length-1     each holds an open file, or none
//   a turn    up to block_length records of the slot's file; an empty slot opens the next file at its turn; a file that is found
//             to be over gives its turn up. Then the next slot.
//
// This is tf.data's order of interleave, also for uneven and empty files.
//
// Threads: functions without state.
// Cost:    a few operations a file and cycle, whatever the number of records.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace penstock {

struct InterleaveState {
  struct Slot {
    bool open = false;
    uint32_t file = 0;     // position in the list of files
    uint64_t ordinal = 0;  // of its next record
  };
  std::vector<Slot> cycle;
  uint32_t next_file = 0;  // the first that was not opened
  uint32_t position = 0;   // the slot whose turn it is
  uint64_t taken_of_block = 0;
  uint64_t taken = 0;  // records in all: fewer than asked for when the files have no more
};

InterleaveState InterleaveAfter(uint64_t records, absl::Span<const uint64_t> counts,
                                uint32_t cycle_length, uint64_t block_length);

}  // namespace penstock
