// What a pause of the process takes away from a clock.

#include "base/running_clock.h"

#include "tests/support/catch.h"

namespace penstock {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST_CASE("a clock that is looked at often runs like the one behind it") {
  RunningClock clock(5 * kSecond);
  for (int64_t now = 5 * kSecond; now <= 65 * kSecond; now += RunningClock::kLongestNs)
    CHECK(clock.Look(now) == now);
}

TEST_CASE("a pause counts as the longest time between looks") {
  RunningClock clock(0);
  CHECK(clock.Look(1000) == 1000);
  CHECK(clock.Look(1000 + 100 * kSecond) == 1000 + RunningClock::kLongestNs);
  CHECK(clock.Look(2000 + 100 * kSecond) == 2000 + RunningClock::kLongestNs);
}

TEST_CASE("time that was meant to pass without a look counts") {
  RunningClock clock(0);
  CHECK(clock.Look(10 * kSecond, 10 * kSecond) == 10 * kSecond);
  // It came early; and late, by a pause of 99 seconds.
  CHECK(clock.Look(12 * kSecond, 10 * kSecond) == 12 * kSecond);
  CHECK(clock.Look(121 * kSecond, 10 * kSecond) == 22 * kSecond + RunningClock::kLongestNs);
}

}  // namespace
}  // namespace penstock
