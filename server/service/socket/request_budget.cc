#include "server/service/socket/request_budget.h"

#include <algorithm>

#include "base/nanoseconds.h"

namespace penstock {
namespace {}  // namespace

bool RequestBudget::Take(uint64_t user, int per_second) {
  const int64_t now_ns = now_ns_();
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = buckets_.find(user);
  if (found == buckets_.end()) {
    if (buckets_.size() >= kMaxUsers) MakeRoom(now_ns);
    found = buckets_.emplace(user, Bucket{static_cast<double>(per_second), now_ns}).first;
  }
  Bucket& bucket = found->second;
  const double earned = static_cast<double>(now_ns - bucket.filled_ns) / kNsPerSecond * per_second;
  bucket.tokens = std::min(bucket.tokens + earned, static_cast<double>(per_second));
  bucket.filled_ns = now_ns;
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

void RequestBudget::MakeRoom(int64_t now_ns) {
  std::erase_if(buckets_, [&](const auto& entry) {
    return static_cast<double>(now_ns - entry.second.filled_ns) >= kNsPerSecond;
  });
  if (buckets_.size() < kMaxUsers) return;
  buckets_.erase(std::min_element(
      buckets_.begin(), buckets_.end(),
      [](const auto& a, const auto& b) { return a.second.filled_ns < b.second.filled_ns; }));
}

}  // namespace penstock
