// Work on several threads at a time, and where there are none to be had.
#include "base/side_by_side.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/pending_call.h"
#include "base/stop_flag.h"
#include "tests/support/catch.h"
#include "tests/support/no_more_threads.h"

namespace penstock {
namespace {

TEST_CASE("work is done by as many threads as were asked for, at a time") {
  std::mutex mutex;
  std::condition_variable changed;
  int there = 0;
  SideBySide(4, "testing", "a", [&] {
    std::unique_lock<std::mutex> lock(mutex);
    ++there;
    changed.notify_all();
    // Whoever works one by one waits for ever.
    changed.wait(lock, [&] { return there == 4; });
  });
  CHECK(there == 4);
}

TEST_CASE("where the system gives no more threads the caller works alone") {
  const test::NoMoreThreads none;
  int times = 0;
  SideBySide(4, "testing", "a", [&] { ++times; });
  CHECK(times == 1);
}

TEST_CASE("a stop of the caller is one of all") {
  const std::atomic<bool> stop{true};
  const StopFlag::Scope scope(&stop);
  std::atomic<int> stopped{0};
  SideBySide(3, "testing", "a", [&] { stopped += IsStopped() ? 1 : 0; });
  CHECK(stopped == 3);
}

TEST_CASE("a read of another thread that hangs is seen as one of the caller") {
  CallSpot spot;
  const CallSpot::OfThisThread watched(spot);
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> is_seen{false};
  std::thread watcher([&] {
    while (true) {
      const std::optional<CallSeen> seen = spot.Look();
      if (seen && seen->doing == "testing" && seen->path == "a") break;
      std::this_thread::yield();
    }
    is_seen = true;
  });
  SideBySide(2, "testing", "a", [&] {
    if (std::this_thread::get_id() == caller) return;
    const std::string path = "b";
    const PendingCall call("reading", path);
    while (!is_seen) std::this_thread::yield();
  });
  watcher.join();
  CHECK(!spot.Look());
}

TEST_CASE("what is thrown is thrown when all have ended") {
  std::atomic<int> begun{0}, ended{0};
  const auto work = [&] {
    if (begun.fetch_add(1) == 0) throw std::runtime_error("one");
    ++ended;
  };
  CHECK_THROWS_AS(SideBySide(3, "testing", "a", work), std::runtime_error);
  CHECK(ended == 2);
}

}  // namespace
}  // namespace penstock
