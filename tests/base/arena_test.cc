// Temporaries of a block: where they lie, how long they stay, and what is kept of their memory.
#include "base/arena.h"

#include <cstring>
#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

struct Piece {
  uint8_t* begin;
  size_t bytes;
  uint8_t mark;
};

// With the bytes behind it that whole vectors may reach.
void Fill(const Piece& piece) {
  std::memset(piece.begin, piece.mark, piece.bytes + Arena::kPadding);
}

bool IsWhole(const Piece& piece) {
  for (size_t i = 0; i < piece.bytes; ++i) {
    if (piece.begin[i] != piece.mark) return false;
  }
  return true;
}

TEST_CASE("pieces of an arena are aligned and keep their bytes, whatever their sizes") {
  Arena arena;
  for (int round = 0; round < 3; ++round) {
    std::vector<Piece> pieces;
    for (const size_t bytes :
         {0, 1, 63, 64, 65, 1000, 262'079, 262'080, 262'081, 262'144, 3'000'000, 7}) {
      const auto mark = static_cast<uint8_t>(pieces.size() + 1);
      pieces.push_back({arena.Allocate(bytes), bytes, mark});
      CHECK(reinterpret_cast<size_t>(pieces.back().begin) % Arena::kAlignment == 0);
    }
    // The last one first: what lies behind a piece is not the next one's.
    for (size_t i = pieces.size(); i-- > 0;) Fill(pieces[i]);
    for (const Piece& piece : pieces) CHECK(IsWhole(piece));
    arena.Reset();
  }
}

TEST_CASE("an arena that has seen a block needs no further memory for another like it") {
  Arena arena;
  const auto run = [&arena] {
    for (int i = 0; i < 100; ++i) arena.Allocate(10'000);
  };
  run();
  arena.Reset();
  const size_t held = arena.capacity_bytes();
  CHECK(held >= 100 * 10'000);
  CHECK(held < 2 * 100 * 10'000);
  uint8_t* const first = arena.Allocate(1);
  arena.Reset();
  for (int round = 0; round < 5; ++round) {
    CHECK(arena.Allocate(1) == first);
    arena.Reset();
    run();
    arena.Reset();
    CHECK(arena.capacity_bytes() == held);
  }
}

TEST_CASE("what was allocated behind a mark is free again, in every chunk, and no more than that") {
  Arena arena;
  const Arena::Mark nothing = arena.GetMark();
  const Piece before{arena.Allocate(1000), 1000, 1};
  Fill(before);
  const Arena::Mark mark = arena.GetMark();
  uint8_t* const behind = arena.Allocate(500);
  // Another chunk.
  arena.Allocate(1 << 20);
  const size_t held = arena.capacity_bytes();
  for (int round = 0; round < 3; ++round) {
    arena.Rewind(mark);
    uint8_t* const again = arena.Allocate(500);
    CHECK(again == behind);
    Fill({again, 500, 2});
    Fill({arena.Allocate(1 << 20), 1 << 20, 3});
    CHECK(arena.capacity_bytes() == held);
  }
  CHECK(IsWhole(before));
  arena.Rewind(nothing);
  CHECK(arena.Allocate(1000) == before.begin);
}

}  // namespace
}  // namespace penstock
