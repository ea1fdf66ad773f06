// Fault 53: a worker that will never come back.

#include "server/service/daemon/watchdog.h"

#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/patient_once.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"

namespace penstock {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
using Threads = std::vector<int32_t>;

TEST_CASE("a pulse that stands still for longer than the limit is found, and only that") {
  bool waits = false;
  Watchdog watchdog(10 * kSecond, [&waits](int32_t) { return waits; });
  const WorkerPulse working{7, 100, false}, sleeping{8, 100, true};
  CHECK(watchdog.Look({working, sleeping}, 1 * kSecond).empty());
  CHECK(watchdog.Look({working, sleeping}, 11 * kSecond).empty());
  CHECK(watchdog.Look({working, sleeping}, 12 * kSecond) == Threads{7});
  // It has come back.
  CHECK(watchdog.Look({{7, 101, false}, sleeping}, 13 * kSecond).empty());
  CHECK(watchdog.Look({{7, 101, false}, sleeping}, 20 * kSecond).empty());
  // A disk that hangs is no reason to end the daemon; the time begins anew behind it.
  waits = true;
  CHECK(watchdog.Look({{7, 101, false}}, 100 * kSecond).empty());
  waits = false;
  CHECK(watchdog.Look({{7, 101, false}}, 105 * kSecond).empty());
  CHECK(watchdog.Look({{7, 101, false}}, 111 * kSecond) == Threads{7});
}

TEST_CASE("a thread that has ended is forgotten, and a new one of its number begins anew") {
  Watchdog watchdog(kSecond, [](int32_t) { return false; });
  CHECK(watchdog.Look({{7, 5, false}}, kSecond).empty());
  CHECK(watchdog.Look({}, 2 * kSecond).empty());
  CHECK(watchdog.Look({{7, 5, false}}, 3 * kSecond).empty());
  CHECK(watchdog.Look({{7, 5, false}}, 4 * kSecond).empty());
  CHECK(watchdog.Look({{7, 5, false}}, 5 * kSecond) == Threads{7});
  // Not begun yet.
  CHECK(watchdog.Look({{0, 5, false}}, 50 * kSecond).empty());
}

// What a thread is seen doing that runs `work`, until it is `expected` or for long enough; then
// `end` ends it.
template <typename Work, typename End>
bool SeenWaiting(bool expected, Work work, End end) {
  std::atomic<int32_t> number{0};
  std::thread thread([&] {
    number = gettid();
    work();
  });
  while (number == 0) std::this_thread::yield();
  bool seen = !expected;
  for (int i = 0; i < 100'000 && seen != expected; ++i) {
    seen = WaitsForMachine(number);
    std::this_thread::yield();
  }
  end();
  thread.join();
  return seen;
}

TEST_CASE("faults 28 and 53: who waits for what another one reads once waits for the machine") {
  if (access("/proc/self/syscall", R_OK) != 0) return;
  PatientOnce once;
  std::atomic<bool> begun{false}, end{false};
  std::atomic<int> times{0};
  std::thread reads([&] {
    once.Call([&] {
      begun = true;
      while (!end) std::this_thread::yield();
      ++times;
    });
  });
  while (!begun) std::this_thread::yield();
  CHECK(SeenWaiting(
      true, [&] { once.Call([&] { ++times; }); }, [&] { end = true; }));
  reads.join();
  once.Call([&] { ++times; });
  CHECK(times == 1);
}

TEST_CASE("a lock and a loop are told from waiting for the machine") {
  if (access("/proc/self/syscall", R_OK) != 0) return;
  std::atomic<bool> end{false};
  const auto finish = [&end] {
    end = true;
    end.notify_all();
  };
  CHECK_FALSE(SeenWaiting(
      false, [&end] { end.wait(false); }, finish));
  end = false;
  const auto spin = [&end] {
    while (!end) {
    }
  };
  CHECK_FALSE(SeenWaiting(false, spin, finish));
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  char byte;
  CHECK(SeenWaiting(
      true, [&] { (void)!read(ends[0], &byte, 1); }, [&] { close(ends[1]); }));
  close(ends[0]);
}

TEST_CASE("a thread that cannot be looked at is not said to hang") {
  // As where there are no descriptors: no thread has the number 0.
  CHECK(WaitsForMachine(0));
}

// Takes steps until it is asked to publish one, which it does not before it is let go.
class HangingSink : public BatchSink {
 public:
  bool TryClaim(ClaimedSlot* slot) override {
    slot->slot = 0;
    slot->tensors = {memory_};
    return true;
  }
  void Publish(const ClaimedSlot&, const StepInfo&) override {
    hangs_ = true;
    let_go_.wait(false);
  }
  void Finish(const absl::Status&) override {}
  void WaitForSlot(absl::Duration) override {}
  void Interrupt() override {}

  bool hangs() const { return hangs_; }
  void LetGo() {
    let_go_ = true;
    let_go_.notify_all();
  }

 private:
  alignas(64) uint8_t memory_[4096];
  std::atomic<bool> hangs_{false};
  std::atomic<bool> let_go_{false};
};

TEST_CASE("fault 53: a worker of a running pipeline that is caught in a lock is found") {
  const auto plan =
      test::PlanText("stage { range { stop: 1000 } } stage { batch { batch_size: 4 } }");
  REQUIRE(plan.ok());
  HangingSink sink;
  ExecutorOptions options;
  options.workers = 3;
  const auto executor = Executor::Create(*plan, sink, options);
  REQUIRE(executor.ok());
  REQUIRE((*executor)->Start().ok());
  while (!sink.hangs()) std::this_thread::yield();
  Watchdog watchdog(kSecond, WaitsForMachine);
  Threads hanging;
  for (int64_t now = kSecond; hanging.empty() && now < 100'000 * kSecond; now += kSecond) {
    hanging = watchdog.Look((*executor)->Pulses(), now);
    std::this_thread::yield();
  }
  CHECK(!hanging.empty());
  sink.LetGo();
  (*executor)->Stop();
}

}  // namespace
}  // namespace penstock
