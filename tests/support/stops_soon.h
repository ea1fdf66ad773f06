// Whether work ends soon after another thread says that nobody wants it (base/stop_flag.h).
//
// Threads:  the work is done by the calling one; another one tells it to stop.
// Cost:     the whole work four times or so, in processor time, which no load of the machine
//           changes.
#pragma once

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "base/stop_flag.h"
#include "tests/support/catch.h"

namespace penstock::test {
namespace stops_soon_internal {

inline int64_t NanosOf(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
}

// There are 50 tries, and as many more as this time has room for.
constexpr int64_t kTriesNs = 5'000'000'000;

struct Outcome {
  bool has_stopped = false;
  int64_t behind_ns = 0;  // what it still took once it was told
};

// Tells the work to stop when it has taken so much processor time.
inline Outcome StopAt(const std::function<void()>& work, int64_t at_ns) {
  clockid_t clock;
  pthread_getcpuclockid(pthread_self(), &clock);
  std::atomic<bool> stop{false}, is_over{false};
  std::atomic<int64_t> told_ns{INT64_MAX};
  const int64_t begin_ns = NanosOf(clock);
  std::thread teller([&] {
    while (NanosOf(clock) - begin_ns < at_ns && !is_over) std::this_thread::yield();
    stop = true;
    told_ns = NanosOf(clock);
  });
  Outcome outcome;
  try {
    const StopFlag::Scope scope(&stop);
    work();
  } catch (const Stopped&) {
    outcome.has_stopped = true;
  } catch (...) {
    is_over = true;
    teller.join();
    throw;
  }
  const int64_t end_ns = NanosOf(clock);
  is_over = true;
  teller.join();
  outcome.behind_ns = end_ns - told_ns;
  return outcome;
}

}  // namespace stops_soon_internal

// Wherever in the work it is told to, it ends by Stopped before it has taken a third of its whole
// time more. The work takes some milliseconds at least.
inline void CheckStopsSoon(const std::function<void()>& work) {
  using namespace stops_soon_internal;  // NOLINT: its own
  // The first time takes longer than the others: memory is fetched, caches are cold.
  int64_t whole_ns = INT64_MAX;
  for (int i = 0; i < 2; ++i) {
    const int64_t begin_ns = NanosOf(CLOCK_THREAD_CPUTIME_ID);
    work();
    whole_ns = std::min(whole_ns, NanosOf(CLOCK_THREAD_CPUTIME_ID) - begin_ns);
  }
  for (const int eighths : {1, 2, 4}) {
    Outcome outcome;
    // On a busy machine the other thread may say it too late, mostly so where the work is short.
    const int64_t begin_ns = NanosOf(CLOCK_MONOTONIC);
    for (int i = 0; i < 50 || NanosOf(CLOCK_MONOTONIC) - begin_ns < kTriesNs; ++i) {
      outcome = StopAt(work, whole_ns / 8 * eighths);
      if (outcome.has_stopped && outcome.behind_ns < whole_ns / 3) break;
    }
    INFO("told behind " << eighths << " eighths of " << whole_ns << " ns, it went on for "
                        << outcome.behind_ns << " ns");
    CHECK(outcome.has_stopped);
    CHECK(outcome.behind_ns < whole_ns / 3);
  }
}

}  // namespace penstock::test
