#include "server/engine/interleave_state.h"

#include <algorithm>

namespace penstock {
namespace {

// Takes as many whole rounds as surely end no file and stay within `records`; REQUIRES: a round is about to begin.
void TakeRounds(uint64_t records, absl::Span<const uint64_t> counts, uint64_t block_length,
                InterleaveState* state) {
  uint64_t open = 0;
  uint64_t rounds = UINT64_MAX;
  for (const InterleaveState::Slot& slot : state->cycle) {
    if (!slot.open) {
      // Its turn opens a file, unless there is none.
      if (state->next_file < counts.size()) return;
      continue;
    }
    ++open;
    rounds = std::min(rounds, (counts[slot.file] - slot.ordinal) / block_length);
  }
  if (open == 0) return;
  rounds = std::min(rounds, (records - state->taken) / (open * block_length));
  for (InterleaveState::Slot& slot : state->cycle) {
    if (slot.open) slot.ordinal += rounds * block_length;
  }
  state->taken += rounds * open * block_length;
}

}  // namespace

InterleaveState InterleaveAfter(uint64_t records, absl::Span<const uint64_t> counts,
                                uint32_t cycle_length, uint64_t block_length) {
  InterleaveState state;
  state.cycle.resize(cycle_length);
  uint32_t num_open = 0;
  const auto advance = [&] {
    state.position = state.position + 1 == cycle_length ? 0 : state.position + 1;
    state.taken_of_block = 0;
  };
  while (state.taken < records && (num_open > 0 || state.next_file < counts.size())) {
    if (state.position == 0 && state.taken_of_block == 0) {
      TakeRounds(records, counts, block_length, &state);
      if (state.taken == records) break;
    }
    InterleaveState::Slot& slot = state.cycle[state.position];
    if (!slot.open) {
      if (state.next_file == counts.size()) {
        advance();
        continue;
      }
      slot = {true, state.next_file++, 0};
      ++num_open;
    }
    const uint64_t left = counts[slot.file] - slot.ordinal;
    if (left == 0) {
      slot.open = false;
      --num_open;
      advance();
      continue;
    }
    const uint64_t taken =
        std::min({left, block_length - state.taken_of_block, records - state.taken});
    slot.ordinal += taken;
    state.taken += taken;
    state.taken_of_block += taken;
    if (state.taken_of_block == block_length) advance();
  }
  return state;
}

}  // namespace penstock
