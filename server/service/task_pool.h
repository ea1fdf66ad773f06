// Threads for what an event loop must not wait for.
//
// Threads:  Run() from any thread; tasks run on the pool's, several at a time.
// Owns:     its threads; the destructor waits for the tasks that run and drops those that wait.
// Limits:   kMaxWaiting tasks in the queue; where the system has no more threads, fewer than were asked for.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/new_thread.h"

namespace penstock {

class TaskPool {
 public:
  static constexpr size_t kMaxWaiting = 4096;

  explicit TaskPool(int threads) {
    for (int i = 0; i < threads; ++i) {
      absl::StatusOr<std::thread> thread = NewThread("control plane", [this] { Work(); });
      if (thread.ok()) {
        threads_.push_back(*std::move(thread));
      } else if (threads_.empty()) {
        status_ = thread.status();
      }
    }
  }
  ~TaskPool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
      queue_.clear();
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  // Why there is no thread at all, if that is so: then nothing that it is given is ever run.
  const absl::Status& status() const { return status_; }

  // False when there are too many already.
  bool Run(std::function<void()> task) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (queue_.size() >= kMaxWaiting) return false;
      queue_.push_back(std::move(task));
    }
    wake_.notify_one();
    return true;
  }

 private:
  void Work() {
    while (true) {
      std::function<void()> task;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
        if (stopping_) return;
        task = std::move(queue_.front());
        queue_.pop_front();
      }
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;  // under mutex_
  bool stopping_ = false;                    // under mutex_
  absl::Status status_;                      // constant after construction
  std::vector<std::thread> threads_;
};

}  // namespace penstock
