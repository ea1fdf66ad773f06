// The state of an interleave of files after a number of records, by arithmetic on the files' record
// counts.
//
//   cycle     slot 0 │ slot 1 │ … │ slot cycle_length-1     each holds an open file, or none
//   a turn    up to block_length records of the slot's file; an empty slot opens the next file at
//             its turn; a file that is found to be over gives its turn up. Then the next slot.
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
    uint64_t file = 0;     // position in the list of files
    uint64_t ordinal = 0;  // of its next record
    uint64_t count = 0;    // of its records
  };
  std::vector<Slot> cycle;
  uint64_t next_file = 0;  // the first that was not opened
  uint32_t position = 0;   // the slot whose turn it is
  uint64_t taken_of_block = 0;
  uint64_t taken = 0;  // records in all: fewer than asked for when the files have no more
};

// Takes records until there are `records` in all, or no more: true. False when the slot whose turn
// it is needs the next file, which OpenNextFile gives it; `over`: there is none.
bool TakeUntil(uint64_t records, uint64_t block_length, bool over, InterleaveState* state);
void OpenNextFile(uint64_t count, InterleaveState* state);

// Both, over files whose counts are known.
InterleaveState InterleaveAfter(uint64_t records, absl::Span<const uint64_t> counts,
                                uint32_t cycle_length, uint64_t block_length);

}  // namespace penstock
