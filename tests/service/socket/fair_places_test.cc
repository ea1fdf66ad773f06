#include "server/service/socket/fair_places.h"

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("fault 57: whoever has most places gives up the quietest of them for who has fewer") {
  FairPlaces places;
  for (FairPlaces::Place place = 0; place < 4; ++place) places.Take(place, 1);
  places.Take(10, 2);
  CHECK(places.HeldBy(1) == 4);
  CHECK(places.ToGiveUp(3) == 0u);
  CHECK(places.ToGiveUp(2) == 0u);
  CHECK_FALSE(places.ToGiveUp(1));
  places.Touch(0);
  CHECK(places.ToGiveUp(3) == 1u);
  CHECK(places.QuietestOf(1) == 1u);
  places.Leave(1);
  places.Leave(2);
  // Two against one: the other one would be turned out next.
  CHECK_FALSE(places.ToGiveUp(2));
  CHECK(places.ToGiveUp(3) == 3u);
}

TEST_CASE("users with a place each keep it") {
  FairPlaces places;
  for (FairPlaces::Place place = 0; place < 4; ++place)
    places.Take(place, static_cast<uid_t>(place));
  CHECK_FALSE(places.ToGiveUp(77));
  CHECK_FALSE(places.QuietestOf(77));
  CHECK(places.QuietestOf(3) == 3u);
  // What nobody has.
  places.Leave(99);
  places.Touch(99);
  CHECK(places.size() == 4);
}

TEST_CASE("the last places are for users who have few") {
  CHECK(MayTakePlace(55, 55, 64));
  CHECK_FALSE(MayTakePlace(56, 56, 64));
  CHECK(MayTakePlace(56, 0, 64));
  CHECK(MayTakePlace(63, 7, 64));
  CHECK_FALSE(MayTakePlace(63, 8, 64));
  CHECK_FALSE(MayTakePlace(64, 0, 64));
  // Too few to keep any.
  CHECK(MayTakePlace(0, 0, 1));
  CHECK(MayTakePlace(6, 6, 7));
  CHECK_FALSE(MayTakePlace(7, 0, 7));
}

}  // namespace
}  // namespace penstock
