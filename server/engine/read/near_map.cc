#include "server/engine/read/near_map.h"

#include <algorithm>

#include "base/monotonic_clock.h"

namespace penstock {

uint64_t NearMap::InMemoryUntil(const RandomAccessFile& opened, uint64_t offset,
                                uint64_t end) const {
  return view_ == PageCacheView::kPages ? map_->InMemoryUntil(offset, end)
                                        : CachedUntil(opened.descriptor(), offset, end);
}

NearMap::Nearness NearMap::Look(const RandomAccessFile& opened, uint64_t offset, uint64_t bytes,
                                uint64_t ahead) {
  const uint64_t end = std::min(offset + bytes, map_->size());
  const uint64_t ahead_end = std::min(end + ahead, map_->size());
  const int64_t now_ns = MonotonicNs();
  std::lock_guard<std::mutex> lock(mutex_);
  if (offset < near_begin_ || offset > near_end_ || now_ns - looked_ns_ >= kFreshNs) {
    near_begin_ = near_end_ = offset;
    looked_ns_ = now_ns;
  }
  // Where a disk is just ahead of the reader, each look finds a little more.
  if (ahead_end > near_end_) {
    near_end_ = InMemoryUntil(opened, near_end_, std::min(ahead_end + kLookBytes, map_->size()));
  }
  return {end <= near_end_, ahead_end <= near_end_};
}

}  // namespace penstock
