// Memory for records: the chunks that reads fill, and cells of equal size classes for small records that wait in a shuffle buffer.
//
// A record is copied out of its chunk on entry, so that a few waiting records do not hold many chunks. Cells are freed in the order of commit and
// taken again last in, first out, while they are still in the cache.
//
// Threads:  one at a time (the front's lock).
// Owns:     all chunks and cells, until destruction.
// Limits:   records of up to kLateRecordBytes; a size class holds 16 bytes more than the last, so at most 15 bytes of a cell are wasted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/engine/record.h"

namespace penstock {

class RecordStore {
 public:
  RecordStore();
  RecordStore(const RecordStore&) = delete;
  RecordStore& operator=(const RecordStore&) = delete;

  // Moves the record into a cell; what it leaves behind in its chunk is released. REQUIRES: record.chunk != nullptr.
  void Adopt(RecordRef* record);

  // The record is no longer needed.
  void Release(const RecordRef& record);

  // An empty chunk for a read.
  RecordChunk* AcquireChunk();
  // `count` of the chunk's users are gone; the last one makes it free for another read.
  void ReleaseChunk(RecordChunk* chunk, uint32_t count = 1) {
    chunk->live -= count;
    if (chunk->live == 0) idle_chunks_.push_back(chunk);
  }

  uint64_t capacity_bytes() const { return capacity_bytes_; }

 private:
  struct SizeClass {
    std::vector<uint8_t*> free;
    size_t next_slab_cells = 16;
  };
  void Grow(size_t size_class);

  std::vector<SizeClass> classes_;
  std::vector<std::unique_ptr<uint8_t[]>> slabs_;
  std::vector<std::unique_ptr<RecordChunk>> chunks_;
  std::vector<RecordChunk*> idle_chunks_;
  uint64_t capacity_bytes_ = 0;
};

}  // namespace penstock
