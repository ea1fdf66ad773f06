#include "server/engine/record_store.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

constexpr size_t kStepBytes = 16;
constexpr size_t kMaxSlabBytes = 1 << 20;

size_t SizeClassOf(uint32_t length) { return (length + kStepBytes - 1) / kStepBytes; }

}  // namespace

RecordStore::RecordStore() : classes_(SizeClassOf(kLateRecordBytes) + 1) {}

void RecordStore::Grow(size_t size_class) {
  SizeClass& cells = classes_[size_class];
  const size_t cell_bytes = std::max<size_t>(size_class, 1) * kStepBytes;
  const size_t count = std::max<size_t>(1, std::min(cells.next_slab_cells, kMaxSlabBytes / cell_bytes));
  cells.next_slab_cells = count * 2;
  const size_t bytes = count * cell_bytes + Arena::kPadding;
  slabs_.emplace_back(new uint8_t[bytes]);
  capacity_bytes_ += bytes;
  uint8_t* cell = slabs_.back().get() + count * cell_bytes;
  while (cell != slabs_.back().get()) {
    cell -= cell_bytes;
    cells.free.push_back(cell);
  }
}

RecordChunk* RecordStore::AcquireChunk() {
  if (idle_chunks_.empty()) {
    chunks_.push_back(std::make_unique<RecordChunk>());
    return chunks_.back().get();
  }
  RecordChunk* chunk = idle_chunks_.back();
  idle_chunks_.pop_back();
  return chunk;
}

void RecordStore::Adopt(RecordRef* record) {
  const size_t size_class = SizeClassOf(record->length);
  SizeClass& cells = classes_[size_class];
  if (cells.free.empty()) Grow(size_class);
  uint8_t* cell = cells.free.back();
  cells.free.pop_back();
  std::memcpy(cell, record->data, record->length);
  ReleaseChunk(record->chunk);
  record->data = cell;
  record->chunk = nullptr;
}

void RecordStore::Release(const RecordRef& record) {
  if (record.chunk != nullptr) {
    ReleaseChunk(record.chunk);
  } else if (record.data != nullptr) {
    classes_[SizeClassOf(record.length)].free.push_back(const_cast<uint8_t*>(record.data));
  }
}

}  // namespace penstock
