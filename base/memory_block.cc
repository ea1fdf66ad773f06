#include "base/memory_block.h"

#include <malloc.h>
#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "base/memory_account.h"

namespace penstock {
namespace {

// Behind the bytes of a block, at the end of what the allocator has given: whom it is charged to.
struct Charged {
  std::shared_ptr<MemoryAccount> account;  // may be null
  uint64_t bytes = 0;
};

Charged* ChargedOf(uint8_t* memory) {
  const size_t end = malloc_usable_size(memory) / alignof(Charged) * alignof(Charged);
  return reinterpret_cast<Charged*>(memory + end - sizeof(Charged));
}

}  // namespace

void FreeMemoryBlock::operator()(uint8_t* memory) const {
  Charged* const charged = ChargedOf(memory);
  if (charged->account != nullptr) charged->account->GiveBack(charged->bytes);
  charged->~Charged();
  std::free(memory);
}

MemoryBlock AllocateMemoryBlock(size_t bytes, FirstPages pages) {
  const bool huge = bytes >= kHugePageBytes;
  const size_t alignment = huge ? kHugePageBytes : 64;
  // Of a row that is as large as no memory is, nothing is left to round up.
  if (bytes > SIZE_MAX / 2) throw std::bad_alloc();
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  Charged charge;
  if (MemoryAccount* const account = MemoryAccount::OfThisThread()) {
    account->Take(rounded);
    charge = {account->shared_from_this(), rounded};
  }
  void* allocated = nullptr;
  if (posix_memalign(&allocated, alignment, rounded + sizeof(Charged)) != 0) {
    if (charge.account != nullptr) charge.account->GiveBack(rounded);
    throw std::bad_alloc();
  }
  auto* const memory = static_cast<uint8_t*>(allocated);
  new (ChargedOf(memory)) Charged(std::move(charge));
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
