// How long users who may only attach are waited for.
#include "ring/guest_purses.h"

#include <cstdint>
#include <set>

#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

constexpr uint64_t kTickNs = 25'000'000;
constexpr uint64_t kSecondNs = 1'000'000'000;

// Looks for so long, each tick; `holding` hold up others all the time. Returns when it ended.
uint64_t LookFor(GuestPurses* purses, uint64_t from_ns, uint64_t for_ns,
                 const std::set<uint32_t>& holding) {
  for (uint64_t now_ns = from_ns; now_ns < from_ns + for_ns; now_ns += kTickNs)
    purses->Look(holding, now_ns);
  return from_ns + for_ns;
}

TEST_CASE("fault 69: a guest's purse is spent while it holds up others, and comes back slowly") {
  GuestPurses purses;
  uint64_t now_ns = LookFor(&purses, kSecondNs, 9 * kSecondNs, {7});
  CHECK_FALSE(purses.IsSpent(7));
  CHECK(purses.LeftNs(7) <= kSecondNs + kTickNs);
  CHECK(purses.LeftNs(8) == GuestPurses::kDefaultNs);
  now_ns = LookFor(&purses, now_ns, 2 * kSecondNs, {7, 8});
  CHECK(purses.IsSpent(7));
  CHECK_FALSE(purses.IsSpent(8));
  CHECK(purses.LeftNs(7) == 0);
  now_ns = LookFor(&purses, now_ns, 9 * kSecondNs, {});
  CHECK(purses.IsSpent(7));
  now_ns = LookFor(&purses, now_ns, 2 * kSecondNs, {});
  CHECK_FALSE(purses.IsSpent(7));
  LookFor(&purses, now_ns, 200 * kSecondNs, {});
  CHECK(purses.LeftNs(7) == GuestPurses::kDefaultNs);
}

TEST_CASE("fault 69: whatever a guest does, others wait for it a tenth of the time") {
  GuestPurses purses;
  uint64_t held_ns = 0, now_ns = kSecondNs;
  const uint64_t end_ns = now_ns + 1000 * kSecondNs;
  for (; now_ns < end_ns; now_ns += kTickNs) {
    const bool holds = !purses.IsSpent(7);
    held_ns += holds ? kTickNs : 0;
    purses.Look(holds ? std::set<uint32_t>{7} : std::set<uint32_t>{}, now_ns);
  }
  CHECK(held_ns < GuestPurses::kDefaultNs + 1000 * kSecondNs / 10);
  CHECK(held_ns > 1000 * kSecondNs / 20);
}

TEST_CASE("a pause between two looks is nobody's, and without a purse nobody is waited for") {
  GuestPurses purses;
  purses.Look({7}, kSecondNs);
  purses.Look({7}, 1000 * kSecondNs);
  CHECK_FALSE(purses.IsSpent(7));
  purses.SetFull(0);
  CHECK(purses.IsSpent(7));
  CHECK(purses.IsSpent(9));
}

}  // namespace
}  // namespace penstock::ring
