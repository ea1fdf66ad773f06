#include "base/arena.h"

#include <algorithm>

#include "base/memory_account.h"

namespace penstock {
namespace {

constexpr size_t kMinChunkBytes = 256 << 10;

size_t RoundUp(size_t bytes) {
  return (bytes + Arena::kPadding + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
}

}  // namespace

uint8_t* Arena::Allocate(size_t bytes) {
  const size_t need = RoundUp(bytes);
  while (chunk_ < chunks_.size()) {
    if (chunks_[chunk_].bytes - offset_ >= need) {
      uint8_t* memory = chunks_[chunk_].memory.get() + offset_;
      offset_ += need;
      return memory;
    }
    ++chunk_;
    offset_ = 0;
  }
  const size_t chunk_bytes = std::max(need, kMinChunkBytes);
  chunks_.push_back({AllocateMemoryBlock(chunk_bytes), chunk_bytes});
  capacity_bytes_ += chunk_bytes;
  chunk_ = chunks_.size() - 1;
  offset_ = need;
  return chunks_.back().memory.get();
}

void Arena::Reset() {
  // One chunk of the whole need serves the next block better than several small ones.
  if (chunks_.size() > 1) {
    const size_t total = capacity_bytes_;
    chunks_.clear();
    capacity_bytes_ = 0;
    chunk_ = offset_ = 0;
    try {
      Allocate(total - kPadding);
    } catch (const MemoryLimitError&) {
      // Whoever needs it again asks again.
    }
  }
  chunk_ = 0;
  offset_ = 0;
}

}  // namespace penstock
