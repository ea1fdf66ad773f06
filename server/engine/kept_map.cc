#include "server/engine/kept_map.h"

#include <algorithm>

#include "server/base/monotonic_clock.h"

namespace penstock {

KeptMap::Nearness KeptMap::Look(uint64_t offset, uint64_t bytes, uint64_t ahead) {
  const uint64_t end = std::min(offset + bytes, map_->size());
  const uint64_t ahead_end = std::min(end + ahead, map_->size());
  const int64_t now_ns = MonotonicNs();
  std::lock_guard<std::mutex> lock(mutex_);
  const bool is_known =
      offset >= near_begin_ && ahead_end <= near_end_ && now_ns - looked_ns_ < kFreshNs;
  if (!is_known) {
    near_begin_ = offset;
    near_end_ = map_->InMemoryUntil(offset, std::min(ahead_end + kLookBytes, map_->size()));
    looked_ns_ = now_ns;
  }
  return {end <= near_end_, ahead_end <= near_end_};
}

}  // namespace penstock
