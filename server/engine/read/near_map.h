// A map of a file that is read from front to back, and how much of it is in memory.
//
// Threads: safe from any thread.
// Cost:    one look at the kernel's pages for each kLookBytes, not one for each read.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "base/file.h"
#include "io/file/page_cache.h"
#include "io/file/shared_maps.h"

namespace penstock {

class NearMap {
 public:
  // What is known of a range: whether looking at its bytes waits for no disk, and whether there is
  // nothing behind it that a disk is to be asked for.
  struct Nearness {
    bool range = false;
    bool ahead = false;
  };

  // `view`: of the file; not kNone.
  NearMap(SharedMaps::Map map, PageCacheView view) : map_(std::move(map)), view_(view) {}

  const MappedFile& file() const { return *map_; }

  // Of [offset, offset + bytes) and the `ahead` bytes behind it. It may be as old as kFreshNs, in
  // which the kernel can have taken pages away again: whoever looks at them then waits for the disk
  // after all. `opened`: the file of the map.
  Nearness Look(const RandomAccessFile& opened, uint64_t offset, uint64_t bytes, uint64_t ahead);

 private:
  static constexpr uint64_t kLookBytes = 2 << 20;
  static constexpr int64_t kFreshNs = 100'000'000;

  uint64_t InMemoryUntil(const RandomAccessFile& opened, uint64_t offset, uint64_t end) const;

  const SharedMaps::Map map_;
  const PageCacheView view_;
  std::mutex mutex_;
  // Under mutex_: what was in memory when it was looked at, and the time of the first of these
  // looks.
  uint64_t near_begin_ = 0;
  uint64_t near_end_ = 0;
  int64_t looked_ns_ = 0;
};

}  // namespace penstock
