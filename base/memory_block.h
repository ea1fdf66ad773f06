// Memory for the data path, aligned for vectors; blocks of a huge page or more lie on huge pages
// where the system has any.
//
// A record that waits in a shuffle buffer is found again at a random place: on 4 KiB pages nearly
// every one costs a walk of the page tables, on a virtual machine two nested ones.
//
// Threads:  any; no state.
// Cost:     aligned_alloc, and for a large block two system calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace penstock {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

struct FreeMemoryBlock {
  void operator()(uint8_t* memory) const;
};
using MemoryBlock = std::unique_ptr<uint8_t, FreeMemoryBlock>;

// Which pages a block of kHugePageBytes and more begins with.
enum class FirstPages {
  kHuge,   // its first byte takes a whole huge page
  kSmall,  // what is touched is taken, until MoveToHugePages()
};

// At least `bytes` uninitialised bytes, aligned to 64 and from kHugePageBytes on to that. Throws
// std::bad_alloc.
MemoryBlock AllocateMemoryBlock(size_t bytes, FirstPages pages = FirstPages::kHuge);

// Puts `bytes` bytes that are in use, whole huge pages, on such; where the system cannot at once
// (Linux before 6.1), when it gets round to it.
void MoveToHugePages(uint8_t* memory, size_t bytes);

}  // namespace penstock
