#include "server/engine/order/interleave_state.h"

#include <random>
#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

// The definition, a record at a time: (file, ordinal) in order.
std::vector<std::pair<uint32_t, uint64_t>> OneByOne(const std::vector<uint64_t>& counts,
                                                    uint32_t cycle_length, uint64_t block_length) {
  std::vector<std::pair<uint32_t, uint64_t>> order;
  std::vector<int> slots(cycle_length, -1);
  std::vector<uint64_t> taken(counts.size());
  uint32_t next_file = 0;
  size_t open = 0;
  for (uint32_t turn = 0; open > 0 || next_file < counts.size(); turn = (turn + 1) % cycle_length) {
    if (slots[turn] < 0 && next_file < counts.size()) {
      slots[turn] = static_cast<int>(next_file++);
      ++open;
    }
    if (slots[turn] < 0) continue;
    const auto file = static_cast<uint32_t>(slots[turn]);
    for (uint64_t i = 0; i < block_length; ++i) {
      if (taken[file] == counts[file]) {
        slots[turn] = -1;
        --open;
        break;
      }
      order.push_back({file, taken[file]++});
    }
  }
  return order;
}

TEST_CASE("the state of an interleave after any number of records is that of its definition") {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<uint64_t> counts(random() % 7);
    for (uint64_t& count : counts) count = random() % 3 == 0 ? 0 : random() % 40;
    const uint32_t cycle_length = 1 + random() % 5;
    const uint64_t block_length = 1 + random() % 4;
    const auto order = OneByOne(counts, cycle_length, block_length);
    for (uint64_t records = 0; records <= order.size() + 1; ++records) {
      const InterleaveState state = InterleaveAfter(records, counts, cycle_length, block_length);
      CAPTURE(round, counts, cycle_length, block_length, records);
      REQUIRE(state.taken == std::min<uint64_t>(records, order.size()));
      // Every file's records that have been taken are those in front of its slot's, or all, or
      // none.
      std::vector<uint64_t> taken(counts.size());
      for (uint64_t i = 0; i < state.taken; ++i) taken[order[i].first] = order[i].second + 1;
      for (const InterleaveState::Slot& slot : state.cycle) {
        if (slot.open) REQUIRE(slot.ordinal == taken[slot.file]);
      }
      // And it goes on as the definition does.
      if (records < order.size() && state.cycle[state.position].open) {
        const InterleaveState::Slot& slot = state.cycle[state.position];
        if (slot.ordinal < counts[slot.file])
          REQUIRE(std::pair(static_cast<uint32_t>(slot.file), slot.ordinal) == order[records]);
      }
    }
  }
}

TEST_CASE("a state far in takes no longer than one near the beginning") {
  // 10^15 records: a loop over them would not end.
  const std::vector<uint64_t> counts(8, uint64_t{1} << 48);
  const InterleaveState state = InterleaveAfter(1'000'000'000'000'003, counts, 8, 1);
  CHECK(state.taken == 1'000'000'000'000'003);
  CHECK(state.position == 3);
}

}  // namespace
}  // namespace penstock
