// Something that is done once, by whoever comes first, where it may read: std::call_once without
// its lock. Whoever comes meanwhile sleeps and looks again, so that it is seen to wait for the
// machine as the one that reads does, and is not taken for one that is caught in a lock
// (server/service/daemon/watchdog.h).
//
// Threads:  safe from any thread.
// Cost:     a load once it is done; up to a millisecond more than the work for those who wait.
#pragma once

#include <atomic>
#include <mutex>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace penstock {

class PatientOnce {
 public:
  template <typename Work>
  void Call(const Work& work) {
    while (!done_.load(std::memory_order_acquire)) {  // SYNC patient-once
      std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
      if (!lock) {
        absl::SleepFor(absl::Milliseconds(1));
      } else if (!done_.load(std::memory_order_relaxed)) {
        work();
        done_.store(true, std::memory_order_release);  // SYNC patient-once
      }
    }
  }
  // Whether a call has returned; what the work did is seen then.
  bool is_done() const { return done_.load(std::memory_order_acquire); }  // SYNC patient-once

 private:
  std::mutex mutex_;
  std::atomic<bool> done_{false};  // SYNC patient-once
};

}  // namespace penstock
