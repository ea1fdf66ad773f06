// Memory for large records and ready elements: cells of like sizes, many to a slab, so that a cache
// of them lies on huge pages. On 4 KiB pages a copy out of elements at random places runs at three
// quarters of its rate.
//
// Sizes are rounded up to one of sixteen steps between two powers of two. The first slab of a size
// has one cell, each further one twice as many, up to kMaxSlabBytes: what is held is at most some
// twice what is used.
//
// Threads:  one at a time (RecordStore's lock).
// Owns:     all cells, until destruction; a slab without a used cell is given back to the system
//           while another of its size has none either. That one stays, since the system clears the
//           memory of a new one.
// Limits:   cells of kLateRecordBytes to kMaxCellBytes; larger records have memory of their own.
//           Behind every record 64 bytes are readable.
// Cost:     Take and Release: a search among the slabs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/memory_block.h"

namespace penstock {

class LargeCells {
 public:
  static constexpr size_t kMaxCellBytes = size_t{4} << 20;
  static constexpr size_t kMaxSlabBytes = size_t{16} << 20;

  // The bytes of the cell of a record: between `length` and a sixteenth more.
  static size_t CellBytes(size_t length);

  uint8_t* Take(size_t length);
  // REQUIRES: Take(), and not released since.
  void Release(const uint8_t* record);

  size_t used() const { return used_; }
  size_t slabs() const { return slabs_.size(); }

 private:
  struct Slab {
    MemoryBlock memory;
    size_t cell_bytes = 0;
    size_t cells = 0;
    size_t begun = 0;  // cells that were ever taken: the others have not been touched
    size_t used = 0;
    std::vector<uint8_t*> free;

    bool has_room() const { return used < cells; }
  };
  struct Size {
    std::vector<Slab*> with_room;  // the one that is taken from last
    Slab* unused = nullptr;        // one of them without a used cell, at the beginning
    size_t next_slab_cells = 1;
  };
  using Slabs = std::map<const uint8_t*, Slab>;

  Slab* Grow(size_t cell_bytes, Size& size);

  size_t used_ = 0;
  Slabs slabs_;  // by their addresses
  std::map<size_t, Size> sizes_;  // by the bytes of a cell
};

}  // namespace penstock
