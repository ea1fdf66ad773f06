// The ends of work that others do, for a thread that has nothing else to do than to wait for them.
//
// Threads:  One() and Wait() belong to the thread that waits; ends come from any.
// Owns:     what cancels the work, until it has ended.
// Limits:   a stop of the waiting thread (base/stop_flag.h) is seen within kLookTime; what then
//           ends soon is waited for, as a Completion promises it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "base/completion.h"

namespace penstock {

class AllEnded final : public Completion::Sink {
 public:
  static constexpr std::chrono::milliseconds kLookTime{50};

  AllEnded() = default;
  // What has not ended is cancelled, and waited for.
  ~AllEnded();
  AllEnded(const AllEnded&) = delete;
  AllEnded& operator=(const AllEnded&) = delete;

  // One more that is waited for.
  Completion One();

  // Waits for all of them and returns the first error. Where the thread is told to stop, all that
  // can be cancelled is.
  absl::Status Wait();

  // For the completions.
  void End(absl::Status status) override;
  void OnCancel(std::function<void()> cancel) override;

 private:
  // Gives up `lock` meanwhile.
  void Cancel(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable ended_;
  // Under mutex_, as those below.
  size_t left_ = 0;
  bool is_cancelled_ = false;
  absl::Status status_;
  std::vector<std::function<void()>> cancels_;
};

}  // namespace penstock
