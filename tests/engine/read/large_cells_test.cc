#include "server/engine/read/large_cells.h"

#include <cstring>
#include <random>
#include <vector>

#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

TEST_CASE("a large cell is at most a sixteenth larger than its record") {
  for (const size_t length : {8193, 10000, 12288, 45000, 442368, 1 << 20, (1 << 20) + 1, 4 << 20}) {
    CAPTURE(length);
    CHECK(LargeCells::CellBytes(length) >= length);
    CHECK(LargeCells::CellBytes(length) <= length + length / 16 + 1);
  }
  CHECK(LargeCells::CellBytes(442368) == 442368);
}

TEST_CASE("large cells keep their bytes among others that come and go") {
  struct Kept {
    uint8_t* cell;
    size_t length;
    uint8_t mark;
  };
  LargeCells cells;
  std::mt19937 random(7);
  std::vector<Kept> all;
  const size_t lengths[] = {8193, 8200, 9000, 50000, 700000, LargeCells::kMaxCellBytes};
  for (int i = 0; i < 4000; ++i) {
    if (all.size() < 60 && random() % 2 == 0) {
      Kept kept{nullptr, lengths[random() % 6], static_cast<uint8_t>(random())};
      kept.cell = cells.Take(kept.length);
      REQUIRE(reinterpret_cast<uintptr_t>(kept.cell) % 64 == 0);
      // The ends, which neighbours would write over; the last is followed by what may be loaded.
      std::memset(kept.cell, kept.mark, 64);
      std::memset(kept.cell + kept.length - 64, kept.mark, 64);
      all.push_back(kept);
    } else if (!all.empty()) {
      const size_t at = random() % all.size();
      const Kept kept = all[at];
      for (const size_t byte : {size_t{0}, size_t{63}, kept.length - 64, kept.length - 1})
        REQUIRE(kept.cell[byte] == kept.mark);
      cells.Release(kept.cell);
      all[at] = all.back();
      all.pop_back();
    }
    REQUIRE(cells.used() == all.size());
  }
}

TEST_CASE("slabs without records go back to the system, but for one of each size") {
  LargeCells cells;
  std::vector<uint8_t*> taken;
  for (int i = 0; i < 1000; ++i) taken.push_back(cells.Take(50000));
  // One, two, four … cells, up to 16 MiB.
  const size_t slabs = cells.slabs();
  CHECK(slabs > 5);
  CHECK(slabs < 14);
  for (uint8_t* cell : taken) cells.Release(cell);
  CHECK(cells.slabs() == 1);
  CHECK(cells.used() == 0);
}

TEST_CASE("of empty slabs of one size the largest stays") {
  LargeCells cells;
  std::vector<uint8_t*> taken;
  // Slabs of one, two and four cells.
  for (int i = 0; i < 7; ++i) taken.push_back(cells.Take(50000));
  REQUIRE(cells.slabs() == 3);
  for (uint8_t* cell : taken) cells.Release(cell);
  REQUIRE(cells.slabs() == 1);
  for (int i = 0; i < 4; ++i) cells.Take(50000);
  CHECK(cells.slabs() == 1);
}

}  // namespace
}  // namespace penstock::testing
