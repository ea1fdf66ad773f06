#include "base/staying_room.h"

#include <cstring>
#include <set>
#include <thread>

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("A room knows what was allocated in it") {
  StayingRoom room;
  uint8_t other[16];
  CHECK_FALSE(room.Has(other, 1));
  std::set<uint8_t*> places;
  for (const size_t bytes : {1, 100, 70'000, 3, 200'000, 16}) {
    uint8_t* const place = room.Allocate(bytes);
    std::memset(place, 1, bytes);
    CHECK(room.Has(place, bytes));
    CHECK(room.Has(place + bytes - 1, 1));
    CHECK(places.insert(place).second);
  }
  CHECK_FALSE(room.Has(other, 1));
  uint8_t* const last = room.Allocate(16);
  CHECK_FALSE(room.Has(last, 17));
  room.Reset();
  CHECK_FALSE(room.Has(last, 16));
}

TEST_CASE("A room is used again when nobody holds it, the last one first") {
  std::shared_ptr<StayingRoom> kept;
  {
    StayingRooms rooms;
    std::shared_ptr<StayingRoom> first = rooms.Take(), second = rooms.Take();
    const StayingRoom* const of_second = second.get();
    uint8_t* const place = second->Allocate(8);
    kept = second->shared_from_this();
    second.reset();
    CHECK(rooms.Take().get() != of_second);
    std::thread([&] { kept.reset(); }).join();
    kept = rooms.Take();
    CHECK(kept.get() == of_second);
    CHECK_FALSE(kept->Has(place, 8));
    CHECK(kept->Allocate(8) == place);
    CHECK(kept.get() != first.get());
  }
  // Behind the end of the others, too.
  std::memset(kept->Allocate(100), 1, 100);
}

TEST_CASE("A room that was large gives its memory back") {
  StayingRooms rooms;
  std::shared_ptr<StayingRoom> room = rooms.Take();
  uint8_t* const large = room->Allocate((1 << 20) + 1);
  room.reset();
  room = rooms.Take();
  CHECK_FALSE(room->Has(large, 1));
  uint8_t* const small = room->Allocate(10);
  CHECK(room->Has(small, 10));
}

TEST_CASE("A thread has the room of the innermost scope") {
  CHECK(StayingRoom::OfThisThread() == nullptr);
  StayingRoom outer, inner;
  {
    const StayingRoom::Scope scope(&outer);
    CHECK(StayingRoom::OfThisThread() == &outer);
    {
      const StayingRoom::Scope none(nullptr);
      CHECK(StayingRoom::OfThisThread() == nullptr);
      const StayingRoom::Scope nested(&inner);
      CHECK(StayingRoom::OfThisThread() == &inner);
      std::thread([] { CHECK(StayingRoom::OfThisThread() == nullptr); }).join();
    }
    CHECK(StayingRoom::OfThisThread() == &outer);
  }
  CHECK(StayingRoom::OfThisThread() == nullptr);
}

}  // namespace
}  // namespace penstock
