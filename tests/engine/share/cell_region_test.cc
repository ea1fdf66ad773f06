#include "server/engine/share/cell_region.h"

#include <cstring>
#include <random>
#include <vector>

#include "tests/support/catch.h"

namespace penstock::test {
namespace {

TEST_CASE("Cells of a region keep their bytes among others that come and go, within its size") {
  struct Kept {
    uint8_t* cell;
    size_t bytes;
    uint8_t mark;
  };
  constexpr size_t kBytes = 1 << 20;
  CellRegion region(kBytes);
  std::mt19937 random(3);
  std::vector<Kept> all;
  size_t refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (!all.empty() && random() % 3 == 0) {
      const size_t which = random() % all.size();
      for (size_t at = 0; at < all[which].bytes; ++at)
        REQUIRE(all[which].cell[at] == all[which].mark);
      region.Release(all[which].cell, all[which].bytes);
      all.erase(all.begin() + static_cast<ptrdiff_t>(which));
      continue;
    }
    const size_t bytes = 1 + random() % 30'000;
    uint8_t* const cell = region.Take(bytes);
    if (cell == nullptr) {
      ++refused;
      continue;
    }
    REQUIRE(reinterpret_cast<uintptr_t>(cell) % 64 == 0);
    // With what lies behind it, which may be read as vectors.
    std::memset(cell, static_cast<uint8_t>(i), bytes);
    all.push_back({cell, bytes, static_cast<uint8_t>(i)});
    REQUIRE(region.used() <= kBytes);
  }
  CHECK(refused > 0);
  // Free pieces are joined again: what is left is one.
  for (const Kept& kept : all) region.Release(kept.cell, kept.bytes);
  CHECK(region.used() == 0);
  uint8_t* const whole = region.Take(kBytes - 64);
  CHECK(whole != nullptr);
  CHECK(region.Take(1) == nullptr);
  region.Release(whole, kBytes - 64);
  region.GiveBack();
  CHECK(region.Take(100) != nullptr);
}

TEST_CASE("A region takes no cell that it cannot hold, however large") {
  CellRegion region(1 << 16);
  CHECK(region.Take(SIZE_MAX) == nullptr);
  CHECK(region.Take(SIZE_MAX - 63) == nullptr);
  CHECK(region.Take(1 << 16) == nullptr);
  CHECK(region.used() == 0);
}

}  // namespace
}  // namespace penstock::test
