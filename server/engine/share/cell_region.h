// Cells of any size in one stretch of memory of a fixed size: what is taken never grows beyond it,
// however the sizes mix.
//
// Threads:  one at a time.
// Owns:     the stretch, which takes pages from the system only where cells have been; GiveBack()
//           returns them.
// Limits:   cells are multiples of 64 bytes and lie on such; behind every cell 64 bytes are
//           readable.
// Cost:     Take and Release: a search in a tree of the free pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace penstock {

class CellRegion {
 public:
  // `bytes` is rounded up to whole pages.
  explicit CellRegion(size_t bytes);
  ~CellRegion();
  CellRegion(const CellRegion&) = delete;
  CellRegion& operator=(const CellRegion&) = delete;

  // The smallest piece that holds so many; null where none does, or the system has no memory.
  uint8_t* Take(size_t bytes);
  // REQUIRES: Take() of as many bytes, and not released since.
  void Release(const uint8_t* cell, size_t bytes);
  // REQUIRES: nothing is taken.
  void GiveBack();

  // What cells of `bytes` bytes take, with what lies behind them.
  static size_t Rounded(size_t bytes);
  size_t used() const { return used_; }
  size_t size() const { return size_; }

 private:
  void AddFree(size_t offset, size_t bytes);

  const size_t size_;
  uint8_t* memory_ = nullptr;  // null before the first Take()
  size_t used_ = 0;
  std::map<size_t, size_t> free_;                // bytes by offset; no two of them touch
  std::set<std::pair<size_t, size_t>> by_size_;  // bytes and offset
};

}  // namespace penstock
