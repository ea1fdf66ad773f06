#include "server/service/socket/user_places.h"

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("fault 57: no user has so many places that others get none") {
  UserPlaces places;
  for (int i = 0; i < 28; ++i) REQUIRE(places.Take(1, 32));
  CHECK_FALSE(places.Take(1, 32));
  for (int i = 0; i < 3; ++i) REQUIRE(places.Take(2, 32));
  CHECK(places.HeldBy(2) == 3);
  // One that was given back is the kept ones' first.
  places.GiveBack(1);
  CHECK(places.HeldBy(1) == 27);
  CHECK_FALSE(places.Take(1, 32));
  for (uint64_t user = 3; user < 5; ++user) CHECK(places.Take(user, 32));
  CHECK_FALSE(places.Take(5, 32));
}

}  // namespace
}  // namespace penstock
