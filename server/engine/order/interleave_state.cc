#include "server/engine/order/interleave_state.h"

#include <algorithm>

namespace penstock {
namespace {

// Takes as many whole rounds as surely end no file and stay within `records`; REQUIRES: a round is
// about to begin.
void TakeRounds(uint64_t records, uint64_t block_length, bool over, InterleaveState* state) {
  uint64_t open = 0;
  uint64_t rounds = UINT64_MAX;
  for (const InterleaveState::Slot& slot : state->cycle) {
    if (!slot.open) {
      // Its turn opens a file, unless there is none.
      if (!over) return;
      continue;
    }
    ++open;
    rounds = std::min(rounds, (slot.count - slot.ordinal) / block_length);
  }
  if (open == 0) return;
  rounds = std::min(rounds, (records - state->taken) / (open * block_length));
  for (InterleaveState::Slot& slot : state->cycle) {
    if (slot.open) slot.ordinal += rounds * block_length;
  }
  state->taken += rounds * open * block_length;
}

}  // namespace

bool TakeUntil(uint64_t records, uint64_t block_length, bool over, InterleaveState* state) {
  auto num_open = std::count_if(state->cycle.begin(), state->cycle.end(),
                                [](const InterleaveState::Slot& slot) { return slot.open; });
  const auto advance = [&] {
    state->position = state->position + 1 == state->cycle.size() ? 0 : state->position + 1;
    state->taken_of_block = 0;
  };
  while (state->taken < records && (num_open > 0 || !over)) {
    if (state->position == 0 && state->taken_of_block == 0) {
      TakeRounds(records, block_length, over, state);
      if (state->taken == records) break;
    }
    InterleaveState::Slot& slot = state->cycle[state->position];
    if (!slot.open) {
      if (!over) return false;
      advance();
      continue;
    }
    const uint64_t left = slot.count - slot.ordinal;
    if (left == 0) {
      slot.open = false;
      --num_open;
      advance();
      continue;
    }
    const uint64_t taken =
        std::min({left, block_length - state->taken_of_block, records - state->taken});
    slot.ordinal += taken;
    state->taken += taken;
    state->taken_of_block += taken;
    if (state->taken_of_block == block_length) advance();
  }
  return true;
}

void OpenNextFile(uint64_t count, InterleaveState* state) {
  state->cycle[state->position] = {true, state->next_file++, 0, count};
}

InterleaveState InterleaveAfter(uint64_t records, absl::Span<const uint64_t> counts,
                                uint32_t cycle_length, uint64_t block_length) {
  InterleaveState state;
  state.cycle.resize(cycle_length);
  while (!TakeUntil(records, block_length, state.next_file == counts.size(), &state))
    OpenNextFile(counts[state.next_file], &state);
  return state;
}

}  // namespace penstock
