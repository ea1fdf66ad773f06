// Memory for small records between the read task that finds them and the commit of the step that
// they fill: cells of equal size classes.
//
// The reader copies a record into its cell while it is still in that processor's cache, so that the
// front never touches a record's bytes, and a few waiting records do not hold whole chunks. Cells
// are taken again last in, first out.
//
// Threads:  safe from any thread; a CellCache belongs to one thread and takes cells in bulk, so
//           that the lock is rare.
// Owns:     all cells, until destruction.
// Limits:   a cell is at most 15 bytes larger than a record below 128 bytes, and 63 above, where it
//           begins on a cache line. Records above kLateRecordBytes, of a stream that cannot be read
//           again, and such elements have cells of their own kind
//           (server/engine/read/large_cells.h). The rows of a block are records of one cell, which
//           goes with the last of them (server/engine/read/row_block.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/memory_block.h"
#include "io/record/record_chunk.h"
#include "server/engine/read/large_cells.h"
#include "server/engine/read/record.h"

namespace penstock {

class RecordStore {
 public:
  static constexpr size_t kNumClasses = 8 + (kLateRecordBytes - 128) / 64 + 1;

  RecordStore() : classes_(kNumClasses) {}
  RecordStore(const RecordStore&) = delete;
  RecordStore& operator=(const RecordStore&) = delete;

  // The class whose cells hold `length` bytes, and the size of its cells.
  static size_t ClassOf(uint32_t length) {
    return length <= 128 ? (length + 15) / 16 : 8 + (length - 128 + 63) / 64;
  }
  static size_t CellBytes(size_t size_class) {
    return size_class <= 8 ? (size_class == 0 ? 16 : 16 * size_class) : 128 + 64 * (size_class - 8);
  }

  // Adds `count` cells to `cells`.
  void Take(size_t size_class, size_t count, std::vector<uint8_t*>* cells);

  // Cells that nothing was put into.
  void GiveBack(size_t size_class, absl::Span<uint8_t* const> cells);

  // Memory for one record above kLateRecordBytes.
  uint8_t* TakeLarge(uint32_t length);

  // A record above kLateRecordBytes lies in memory that others have lent, which lives as long as
  // `keeper` does: that goes when the record is released. Once for each record there.
  void Borrow(const uint8_t* record, std::shared_ptr<const void> keeper);

  // The records have one owner more: they stay until Release() has been called once for each.
  void Share(absl::Span<const RecordRef> records);

  // Each of the records has one owner less, and is released with the record at `cell`, which is one
  // of this store's and has no such records yet.
  void Own(const uint8_t* cell, RecordList records);

  // The records are no longer needed.
  void Release(absl::Span<const RecordRef> records);

  // Taken and not given back: of all sizes.
  uint64_t cells() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return cells_ + large_.used() + larger_.size() + borrowed_.size();
  }

 private:
  struct SizeClass {
    std::vector<uint8_t*> free;
    size_t next_slab_cells = 16;
    size_t num_largest = 0;           // slabs of the largest size
    uint8_t* last_largest = nullptr;  // one of them that is not on a huge page yet
  };
  void Grow(size_t size_class);
  using Keepers = std::vector<std::shared_ptr<const void>>;
  // REQUIRES: mutex_. Records that those owned are added to `owned`, and what goes with lent ones
  // to `keepers`.
  void ReleaseLocked(absl::Span<const RecordRef> records, RecordList* owned, Keepers* keepers);
  // Whether the record lay in lent memory.
  bool ReturnLocked(const uint8_t* record, Keepers* keepers);

  mutable std::mutex mutex_;
  uint64_t cells_ = 0;                                      // under mutex_; of classes_
  std::vector<SizeClass> classes_;                          // under mutex_
  std::vector<MemoryBlock> slabs_;                          // under mutex_
  LargeCells large_;                                        // under mutex_
  std::unordered_map<const uint8_t*, MemoryBlock> larger_;  // under mutex_: above its limit
  std::unordered_map<const uint8_t*, uint64_t> shared_;  // under mutex_: further owners, at least 1
  std::unordered_map<const uint8_t*, RecordList>
      owned_;  // under mutex_: by the record of that cell
  struct Borrowed {
    std::shared_ptr<const void> keeper;
    uint64_t records = 0;  // two streams may read one file
  };
  std::unordered_map<const uint8_t*, Borrowed> borrowed_;  // under mutex_
};

// One reader's stock of cells, which goes back to the store with it.
class CellCache {
 public:
  explicit CellCache(RecordStore& store) : store_(store), classes_(RecordStore::kNumClasses) {}
  // Workers come and go: what they have in stock is not to stay behind each time.
  ~CellCache() { Drain(); }
  CellCache(const CellCache&) = delete;
  CellCache& operator=(const CellCache&) = delete;

  // A cell for `length` bytes, or memory of its own above kLateRecordBytes.
  uint8_t* Take(uint32_t length);

  // As RecordStore::Borrow().
  void Borrow(const uint8_t* record, std::shared_ptr<const void> keeper) {
    store_.Borrow(record, std::move(keeper));
  }

  // A cell, or memory, that was taken for `length` bytes, and that nobody knows of.
  void GiveBack(uint8_t* cell, uint32_t length);

  // A copy of the record in a cell of its own. At least 63 bytes behind `data` must be readable.
  const uint8_t* Keep(const uint8_t* data, uint32_t length);

  // Gives all cells in stock back to the store.
  void Drain();

  // Cells in stock.
  uint64_t size() const {
    uint64_t sum = 0;
    for (const std::vector<uint8_t*>& cells : classes_) sum += cells.size();
    return sum;
  }

 private:
  static constexpr size_t kBulk = 64;
  RecordStore& store_;
  std::vector<std::vector<uint8_t*>> classes_;
};

}  // namespace penstock
