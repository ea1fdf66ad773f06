// What the front has asked for and a worker will do: first come, first served, but for what a
// worker would rather do.
//
// Threads:  Push() by the front; Pop() by any worker.
// Owns:     nothing; whoever pushed a request keeps it until it is done.
#pragma once

#include <algorithm>
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

  // The first request that is_preferred(request), or the first one. Null when there is none.
  template <typename IsPreferred>
  Request* Pop(const IsPreferred& is_preferred) {
    if (empty()) return nullptr;
    std::lock_guard<std::mutex> lock(mutex_);
    if (requests_.empty()) return nullptr;
    auto found = std::find_if(requests_.begin(), requests_.end(),
                              [&](const Request* request) { return is_preferred(*request); });
    if (found == requests_.end()) found = requests_.begin();
    Request* request = *found;
    requests_.erase(found);
    size_.store(requests_.size(), std::memory_order_relaxed);
    return request;
  }
  Request* Pop() {
    return Pop([](const Request&) { return true; });
  }

  size_t size() const { return size_.load(std::memory_order_relaxed); }
  bool empty() const { return size() == 0; }

 private:
  std::mutex mutex_;
  std::deque<Request*> requests_;  // under mutex_
  std::atomic<size_t> size_{0};
};

}  // namespace penstock
