#include "server/engine/read/record_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/arena.h"
#include "server/engine/read/row_block.h"

namespace penstock {
namespace {

constexpr size_t kMaxSlabBytes = kHugePageBytes;
// So many of the largest slabs of a class are filled page by page, which costs half a millisecond
// each; beside more of them a huge page is little.
constexpr size_t kSlabsByPage = 32;
// Behind the last cell, for loads of whole vectors.
constexpr size_t kPadding = Arena::kPadding;

// Which of the cells in stock is fetched while one is taken: 4 and 6 bring about as much, 2 less.
constexpr size_t kCellsAhead = 8;

// What a stock takes at a time of cells of one size is at most that, but for a few. Records of many
// sizes have a stock of each, and all of these go through the processor's cache (64 of each size of
// 0.5 to 3.5 KB are 6 MiB).
constexpr size_t kBulkBytes = 16 << 10;
constexpr size_t kLeastInBulk = 4;

// Fetches a small cell for being written. Another processor has read it last, and writing would
// wait until that one gives it up.
void FetchForWriting(uint8_t* cell, size_t bytes) {
  constexpr size_t kLine = 64, kMaxBytes = 512;
  for (size_t at = 0; at < std::min(bytes, kMaxBytes); at += kLine) {
#if defined(__x86_64__)
    // What __builtin_prefetch becomes without a newer -march has them fetched for being read.
    asm volatile("prefetchw %0" : : "m"(cell[at]));
#else
    __builtin_prefetch(cell + at, 1);
#endif
  }
}

// REQUIRES: a row of a block, and the store's lock.
RowBlock& BlockOf(const RecordRef& row) { return const_cast<RowBlock&>(RowBlock::Of(row)); }

}  // namespace

void RecordStore::Grow(size_t size_class) {
  SizeClass& cells = classes_[size_class];
  const size_t cell_bytes = CellBytes(size_class);
  const size_t count =
      std::max<size_t>(1, std::min(cells.next_slab_cells, (kMaxSlabBytes - kPadding) / cell_bytes));
  cells.next_slab_cells = count * 2;
  // The largest slabs are rounded up to a huge page. Of the last one as much is taken as was used,
  // so that a few records more than ever before are not two megabytes more.
  if (cells.last_largest != nullptr)
    MoveToHugePages(std::exchange(cells.last_largest, nullptr), kMaxSlabBytes);
  const bool largest = 2 * count * cell_bytes > kMaxSlabBytes;
  const bool by_page = largest && cells.num_largest++ < kSlabsByPage;
  slabs_.push_back(AllocateMemoryBlock(largest ? kMaxSlabBytes : count * cell_bytes + kPadding,
                                       by_page ? FirstPages::kSmall : FirstPages::kHuge));
  uint8_t* slab = slabs_.back().get();
  if (by_page) cells.last_largest = slab;
  for (size_t i = count; i-- > 0;) cells.free.push_back(slab + i * cell_bytes);
}

void RecordStore::Take(size_t size_class, size_t count, std::vector<uint8_t*>* cells) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<uint8_t*>& free = classes_[size_class].free;
  while (free.size() < count) Grow(size_class);
  cells->insert(cells->end(), free.end() - count, free.end());
  free.resize(free.size() - count);
  cells_ += count;
}

void RecordStore::GiveBack(size_t size_class, absl::Span<uint8_t* const> cells) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<uint8_t*>& free = classes_[size_class].free;
  free.insert(free.end(), cells.begin(), cells.end());
  cells_ -= cells.size();
}

uint8_t* RecordStore::TakeLarge(uint32_t length) {
  if (length <= LargeCells::kMaxCellBytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    return large_.Take(length);
  }
  MemoryBlock memory = AllocateMemoryBlock(length + kPadding);
  uint8_t* const record = memory.get();
  std::lock_guard<std::mutex> lock(mutex_);
  larger_.emplace(record, std::move(memory));
  return record;
}

void RecordStore::Share(absl::Span<const RecordRef> records) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const RecordRef& record : records) {
    if (RowBlock::HasRow(record)) {
      ++BlockOf(record).open;
    } else if (record.in_cell()) {
      ++shared_[record.data];
    }
  }
}

void RecordStore::Own(const uint8_t* cell, RecordList records) {
  std::lock_guard<std::mutex> lock(mutex_);
  owned_.emplace(cell, std::move(records));
}

void RecordStore::Borrow(const uint8_t* record, std::shared_ptr<const void> keeper) {
  std::lock_guard<std::mutex> lock(mutex_);
  Borrowed& borrowed = borrowed_[record];
  borrowed.keeper = std::move(keeper);
  ++borrowed.records;
}

void RecordStore::Release(absl::Span<const RecordRef> records) {
  Keepers keepers;  // go behind the lock
  std::lock_guard<std::mutex> lock(mutex_);
  RecordList owned;
  ReleaseLocked(records, &owned, &keepers);
  while (!owned.empty()) {
    const RecordList next = std::exchange(owned, {});
    ReleaseLocked(next, &owned, &keepers);
  }
}

bool RecordStore::ReturnLocked(const uint8_t* record, Keepers* keepers) {
  if (borrowed_.empty()) return false;
  const auto found = borrowed_.find(record);
  if (found == borrowed_.end()) return false;
  if (--found->second.records > 0) return true;
  keepers->push_back(std::move(found->second.keeper));
  borrowed_.erase(found);
  return true;
}

void RecordStore::ReleaseLocked(absl::Span<const RecordRef> records, RecordList* owned,
                                Keepers* keepers) {
  const bool are_shared = !shared_.empty() || !owned_.empty();
  const auto release_cell = [this](const uint8_t* cell, uint32_t length) {
    classes_[ClassOf(length)].free.push_back(const_cast<uint8_t*>(cell));
    --cells_;
  };
  for (size_t i = 0; i < records.size(); ++i) {
    const RecordRef& record = records[i];
    if (!record.in_cell()) continue;
    if (!are_shared && record.length <= kLateRecordBytes && !RowBlock::HasRow(record)) {
      release_cell(record.data, record.length);
      continue;
    }
    uint32_t length = record.length;
    if (RowBlock::HasRow(record)) {
      // Rows of a block come mostly one after another.
      RowBlock& block = BlockOf(record);
      --block.open;
      for (; i + 1 < records.size() && records[i + 1].data == record.data; ++i) --block.open;
      if (block.open > 0) continue;
      length = block.bytes;
    } else if (!shared_.empty()) {
      const auto shared = shared_.find(record.data);
      if (shared != shared_.end()) {
        if (--shared->second == 0) shared_.erase(shared);
        continue;
      }
    }
    if (!owned_.empty()) {
      if (const auto found = owned_.find(record.data); found != owned_.end()) {
        owned->insert(owned->end(), found->second.begin(), found->second.end());
        owned_.erase(found);
      }
    }
    if (length > kLateRecordBytes && ReturnLocked(record.data, keepers)) continue;
    if (length > LargeCells::kMaxCellBytes) {
      larger_.erase(record.data);
    } else if (length > kLateRecordBytes) {
      large_.Release(record.data);
    } else {
      release_cell(record.data, length);
    }
  }
}

uint8_t* CellCache::Take(uint32_t length) {
  if (length > kLateRecordBytes) return store_.TakeLarge(length);
  const size_t size_class = RecordStore::ClassOf(length);
  std::vector<uint8_t*>& cells = classes_[size_class];
  if (cells.empty()) {
    const size_t most = kBulkBytes / RecordStore::CellBytes(size_class);
    store_.Take(size_class, std::clamp(most, kLeastInBulk, kBulk), &cells);
  }
  uint8_t* cell = cells.back();
  cells.pop_back();
  if (cells.size() >= kCellsAhead)
    FetchForWriting(cells[cells.size() - kCellsAhead], RecordStore::CellBytes(size_class));
  return cell;
}

void CellCache::GiveBack(uint8_t* cell, uint32_t length) {
  if (length > kLateRecordBytes) {
    RecordRef record;
    record.data = cell;
    record.length = length;
    store_.Release(absl::MakeConstSpan(&record, 1));
  } else {
    classes_[RecordStore::ClassOf(length)].push_back(cell);
  }
}

void CellCache::Drain() {
  for (size_t i = 0; i < classes_.size(); ++i) {
    if (classes_[i].empty()) continue;
    store_.GiveBack(i, classes_[i]);
    classes_[i].clear();
  }
}

const uint8_t* CellCache::Keep(const uint8_t* data, uint32_t length) {
  uint8_t* const record = Take(length);
  // The whole cell: a copy of a round number of bytes is the faster one.
  std::memcpy(
      record, data,
      length > kLateRecordBytes ? length : RecordStore::CellBytes(RecordStore::ClassOf(length)));
  return record;
}

}  // namespace penstock
