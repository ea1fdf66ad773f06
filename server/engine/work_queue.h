// What the front has asked for and a worker will do: first come, first served.
//
// Threads:  Push() by the front; Pop() by any worker.
// Owns:     nothing; whoever pushed a request keeps it until it is done.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>

namespace penstock {

template <typename Request>
class WorkQueue {
 public:
  void Push(Request* request) {
    std::lock_guard<std::mutex> lock(mutex_);
    requests_.push_back(request);
    size_.store(requests_.size(), std::memory_order_relaxed);
  }

  // Null when there is none.
  Request* Pop() {
    if (empty()) return nullptr;
    std::lock_guard<std::mutex> lock(mutex_);
    if (requests_.empty()) return nullptr;
    Request* request = requests_.front();
    requests_.pop_front();
    size_.store(requests_.size(), std::memory_order_relaxed);
    return request;
  }

  size_t size() const { return size_.load(std::memory_order_relaxed); }
  bool empty() const { return size() == 0; }

 private:
  std::mutex mutex_;
  std::deque<Request*> requests_;  // under mutex_
  std::atomic<size_t> size_{0};
};

}  // namespace penstock
