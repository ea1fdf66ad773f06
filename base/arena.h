// Bump allocation for the temporaries of one block of rows.
//
// Threads:  one thread.
// Owns:     its chunks, until destruction; Reset() makes them free for the next block and keeps
//           them.
// Limits:   a single allocation of any size; what is kept between blocks is the largest block's
//           need.
// Cost:     an addition; malloc only while the need still grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/memory_block.h"

namespace penstock {

class Arena {
 public:
  static constexpr size_t kAlignment = 64;
  // Readable and writable bytes behind every allocation, so that a kernel may load or store whole
  // vectors.
  static constexpr size_t kPadding = 64;

  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // `bytes` uninitialised bytes, aligned to kAlignment, valid until Reset().
  uint8_t* Allocate(size_t bytes);

  template <typename T>
  T* AllocateArray(size_t count) {
    return reinterpret_cast<T*>(Allocate(count * sizeof(T)));
  }

  void Reset();

  // A place to come back to: Rewind() frees everything that was allocated after GetMark(), whose
  // memory the next allocations take while it is still in cache. Marks end with Reset().
  struct Mark {
    size_t chunk = 0;
    size_t offset = 0;
  };
  Mark GetMark() const { return {chunk_, offset_}; }
  void Rewind(Mark mark) {
    chunk_ = mark.chunk;
    offset_ = mark.offset;
  }

  // Bytes held from the system.
  size_t capacity_bytes() const { return capacity_bytes_; }

 private:
  struct Chunk {
    MemoryBlock memory;
    size_t bytes;
  };
  std::vector<Chunk> chunks_;
  size_t chunk_ = 0;   // the chunk that is being filled
  size_t offset_ = 0;  // first free byte in it
  size_t capacity_bytes_ = 0;
};

}  // namespace penstock
