// Calls that somebody else looks at while they are under way.
#include "base/pending_call.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("fault 28: a call is seen while it is under way") {
  CallSpot spot;
  const std::string path = "a file";
  CHECK_FALSE(spot.Look());
  {
    const PendingCall nobodys("reading", path);
    CHECK_FALSE(spot.Look());
  }
  const CallSpot::OfThisThread here(spot);
  {
    const PendingCall call("reading", path, 17);
    const auto seen = spot.Look();
    REQUIRE(seen);
    CHECK(seen->doing == "reading");
    CHECK(seen->path == path);
    CHECK(seen->offset == 17);
    CHECK(seen->kind == CallKind::kRead);
    CHECK_FALSE(spot.Look(UINT64_MAX));
  }
  {
    const PendingCall call("writing", path, 18, CallKind::kWrite);
    const auto seen = spot.Look();
    REQUIRE(seen);
    CHECK(seen->kind == CallKind::kWrite);
  }
  CHECK_FALSE(spot.Look());
}

TEST_CASE(
    "of calls within each other the innermost is seen, and the outer one begins anew behind it") {
  CallSpot spot;
  const CallSpot::OfThisThread here(spot);
  const std::string outer = "outer", inner = "inner";
  const PendingCall call("opening", outer);
  uint64_t inner_ticks = 0;
  {
    const PendingCall within("reading", inner, 3);
    while (inner_ticks < 1'000'000) {
      const auto seen = spot.Look();
      REQUIRE(seen);
      REQUIRE(seen->path == inner);
      inner_ticks = seen->ticks;
    }
  }
  const uint64_t begin = Ticks();
  const auto seen = spot.Look();
  const uint64_t passed = Ticks() - begin;
  REQUIRE(seen);
  CHECK(seen->path == outer);
  CHECK((seen->ticks < inner_ticks || passed > inner_ticks));
}

TEST_CASE("a thread's spot is its own, and the one before it comes back") {
  CallSpot first, second;
  const std::string path = "a file";
  const CallSpot::OfThisThread here(first);
  {
    const CallSpot::OfThisThread there(second);
    const PendingCall call("reading", path);
    CHECK_FALSE(first.Look());
    CHECK(second.Look());
    std::thread([&] {
      const PendingCall of_another_thread("reading", path);
      CHECK_FALSE(first.Look());
    }).join();
  }
  const PendingCall call("reading", path);
  CHECK(first.Look());
  CHECK_FALSE(second.Look());
}

TEST_CASE("who looks sees whole calls while they come and go") {
  CallSpot spot;
  std::atomic<bool> ends{false};
  std::atomic<uint64_t> calls{0};
  std::thread worker([&] {
    const CallSpot::OfThisThread here(spot);
    for (uint64_t i = 0; !ends; ++i) {
      // A path that goes with its call.
      const std::string path(1 + i % 100, 'p');
      const PendingCall call("reading", path, path.size());
      calls.fetch_add(1);
    }
  });
  std::vector<std::thread> lookers;
  std::atomic<uint64_t> torn{0}, looks{0};
  for (int i = 0; i < 2; ++i) {
    lookers.emplace_back([&] {
      while (!ends) {
        const auto seen = spot.Look();
        if (!seen) continue;
        looks.fetch_add(1);
        if (seen->path != std::string(seen->offset, 'p')) torn.fetch_add(1);
      }
    });
  }
  while (looks < 1000 || calls < 10'000) std::this_thread::yield();
  ends = true;
  worker.join();
  for (std::thread& looker : lookers) looker.join();
  CHECK(torn == 0);
}

}  // namespace
}  // namespace penstock
