// Threads for what an event loop must not wait for.
//
// Threads:  Run() from any thread; tasks run on the pool's, several at a time, but those for one
//           object one after the other: what hangs for it keeps one thread.
// Owns:     its threads; the destructor waits for the tasks that run and drops those that wait.
// Limits:   kMaxWaiting tasks in the queue; where the system has no more threads, fewer than were
//           asked for.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/new_thread.h"

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

  // False when there are too many already. `object`: what it is for, which it keeps alive; null:
  // nothing.
  bool Run(std::function<void()> work, const void* object = nullptr) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (queue_.size() >= kMaxWaiting) return false;
      queue_.push_back({object, std::move(work)});
    }
    wake_.notify_one();
    return true;
  }

 private:
  struct Task {
    const void* object = nullptr;
    std::function<void()> work;
  };

  // The first one for whose object nothing runs; none. REQUIRES: mutex_.
  std::deque<Task>::iterator NextTask() {
    return std::find_if(queue_.begin(), queue_.end(),
                        [this](const Task& task) { return !running_.contains(task.object); });
  }

  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stopping_ || NextTask() != queue_.end(); });
      if (stopping_) return;
      const auto next = NextTask();
      Task task = std::move(*next);
      queue_.erase(next);
      if (task.object != nullptr) running_.insert(task.object);
      lock.unlock();
      task.work();
      // It may own much, whose end takes time.
      task.work = nullptr;
      lock.lock();
      // The others looked past what else there is for it, which this thread takes up again.
      running_.erase(task.object);
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;         // under mutex_
  std::set<const void*> running_;  // under mutex_: for whom something runs
  bool stopping_ = false;          // under mutex_
  absl::Status status_;            // constant after construction
  std::vector<std::thread> threads_;
};

}  // namespace penstock
