// How often each user may ask: a bucket of tokens a user, which fills up at a steady rate.
//
// Threads:  safe from any thread.
// Limits:   kMaxUsers buckets; one that is full again needs none.
// Cost:     a lock and a look-up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace penstock {

class RequestBudget {
 public:
  static constexpr size_t kMaxUsers = 1024;

  // `now_ns`: a monotonic clock.
  explicit RequestBudget(std::function<int64_t()> now_ns) : now_ns_(std::move(now_ns)) {}

  // Takes one token of `user`'s; false when there is none. A bucket holds a second's worth,
  // `per_second` tokens, and begins full.
  bool Take(uint64_t user, int per_second);

 private:
  struct Bucket {
    double tokens = 0;
    int64_t filled_ns = 0;
  };
  // Drops the buckets that a second has filled again, else the one that was used longest ago.
  void MakeRoom(int64_t now_ns);  // under mutex_

  const std::function<int64_t()> now_ns_;
  std::mutex mutex_;
  std::map<uint64_t, Bucket> buckets_;  // under mutex_
};

}  // namespace penstock
