#include "base/memory_block.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace penstock {

void FreeMemoryBlock::operator()(uint8_t* memory) const { std::free(memory); }

MemoryBlock AllocateMemoryBlock(size_t bytes, FirstPages pages) {
  const bool huge = bytes >= kHugePageBytes;
  const size_t alignment = huge ? kHugePageBytes : 64;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  auto* memory = static_cast<uint8_t*>(std::aligned_alloc(alignment, rounded));
  if (memory == nullptr) throw std::bad_alloc();
  // A hint: without huge pages it works as well, slower.
  if (huge && pages == FirstPages::kHuge) madvise(memory, rounded, MADV_HUGEPAGE);
  return MemoryBlock(memory);
}

void MoveToHugePages(uint8_t* memory, size_t bytes) {
#if !defined(MADV_COLLAPSE)
  constexpr int MADV_COLLAPSE =
      25;  // younger than the C library's headers; the same for all architectures but alpha
#endif
  if (madvise(memory, bytes, MADV_COLLAPSE) != 0) madvise(memory, bytes, MADV_HUGEPAGE);
}

}  // namespace penstock
