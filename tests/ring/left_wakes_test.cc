// Wake-ups that are left to a place: who gets them, and when nobody may be counted on. Processors
// and times are made up.
#include "ring/left_wakes.h"

#include <memory>

#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

constexpr uint32_t kHere = 1, kThere = 2, kElsewhere = 3;
constexpr uint64_t kStart = 1'000'000'000;
constexpr uint64_t kShort = LeftWakes::kSoonNs / 3;

// Somebody works at `kThere`, and has passed by at kStart.
std::unique_ptr<LeftWakes> WithAWorker() {
  auto wakes = std::make_unique<LeftWakes>();
  CHECK(wakes->PassBy(kThere, kStart - kShort) == 0);
  CHECK(wakes->PassBy(kThere, kStart) == 0);
  return wakes;
}

TEST_CASE("who passes by at the sleeper's processor gets what was left there, once") {
  auto wakes = WithAWorker();
  REQUIRE(wakes->Leave(kThere, 0b0100, kHere, kStart + 1));
  REQUIRE(wakes->Leave(kThere, 0b1000, kHere, kStart + 2));
  CHECK(wakes->PassBy(kHere, kStart + 3) == 0);
  CHECK(wakes->PassBy(kThere, kStart + kShort) == 0b1100);
  CHECK(wakes->PassBy(kThere, kStart + kShort + 1) == 0);
}

TEST_CASE("after a moment anybody gets it") {
  auto wakes = WithAWorker();
  REQUIRE(wakes->Leave(kThere, 1, kHere, kStart + 1));
  CHECK(wakes->PassBy(kElsewhere, kStart + LeftWakes::kSoonNs) == 0);
  CHECK(wakes->PassBy(kElsewhere, kStart + 1 + LeftWakes::kSoonNs) == 1);
  CHECK(wakes->PassBy(kThere, kStart + 2 + LeftWakes::kSoonNs) == 0);
  // The moment of the next one is its own.
  wakes->PassBy(kThere, kStart + 2 * LeftWakes::kSoonNs);
  wakes->PassBy(kThere, kStart + 2 * LeftWakes::kSoonNs + 1);
  REQUIRE(wakes->Leave(kThere, 2, kHere, kStart + 2 * LeftWakes::kSoonNs + 2));
  CHECK(wakes->PassBy(kElsewhere, kStart + 2 * LeftWakes::kSoonNs + 3) == 0);
}

TEST_CASE("who rests gets all that is left, wherever") {
  auto wakes = WithAWorker();
  wakes->PassBy(kElsewhere, kStart);
  wakes->PassBy(kElsewhere, kStart + 1);
  REQUIRE(wakes->Leave(kThere, 1, kHere, kStart + 2));
  REQUIRE(wakes->Leave(kElsewhere, 2, kHere, kStart + 2));
  CHECK(wakes->Rest(kHere) == 3);
  CHECK(wakes->Rest(kHere) == 0);
}

TEST_CASE("nothing is left where nobody is to be counted on") {
  auto wakes = WithAWorker();
  SECTION("the sleeper has said nothing") { CHECK_FALSE(wakes->Leave(0, 1, kHere, kStart)); }
  SECTION("the caller is there himself") { CHECK_FALSE(wakes->Leave(kThere, 1, kThere, kStart)); }
  SECTION("nobody works there") { CHECK_FALSE(wakes->Leave(kElsewhere, 1, kHere, kStart)); }
  SECTION("who worked there rests") {
    wakes->Rest(kThere);
    CHECK_FALSE(wakes->Leave(kThere, 1, kHere, kStart + 1));
  }
  SECTION("the work there is long") {
    CHECK_FALSE(wakes->Leave(kThere, 1, kHere, kStart + LeftWakes::kSoonNs));
  }
  SECTION("the work there was long the last time") {
    wakes->PassBy(kThere, kStart + LeftWakes::kSoonNs);
    CHECK_FALSE(wakes->Leave(kThere, 1, kHere, kStart + LeftWakes::kSoonNs));
  }
  SECTION("there has been one piece of work only, long ago and now") {
    wakes->PassBy(kElsewhere, kStart);
    CHECK_FALSE(wakes->Leave(kElsewhere, 1, kHere, kStart));
  }
}

TEST_CASE("processors beyond the places share them") {
  auto wakes = WithAWorker();
  REQUIRE(wakes->Leave(kThere + LeftWakes::kPlaces, 1, kHere, kStart));
  CHECK(wakes->PassBy(kThere, kStart + 1) == 1);
}

}  // namespace
}  // namespace penstock::ring
