// What a block of memory takes from the system, and when.
#include "base/memory_block.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

// How many pages of it are in memory.
size_t NumTaken(uint8_t* memory, size_t bytes) {
  const size_t page = sysconf(_SC_PAGESIZE);
  std::vector<unsigned char> pages(bytes / page);
  REQUIRE(mincore(memory, bytes, pages.data()) == 0);
  size_t taken = 0;
  for (const unsigned char flags : pages) taken += flags & 1;
  return taken;
}

TEST_CASE("a block that begins with small pages takes what is touched") {
  const MemoryBlock block = AllocateMemoryBlock(kHugePageBytes, FirstPages::kSmall);
  CHECK(reinterpret_cast<uintptr_t>(block.get()) % kHugePageBytes == 0);
  std::memset(block.get(), 1, 10 * sysconf(_SC_PAGESIZE));
  CHECK(NumTaken(block.get(), kHugePageBytes) == 10);
}

TEST_CASE("a block keeps its bytes when it moves to huge pages") {
  const MemoryBlock block = AllocateMemoryBlock(kHugePageBytes, FirstPages::kSmall);
  for (size_t i = 0; i < kHugePageBytes; ++i) block.get()[i] = static_cast<uint8_t>(i * 7 >> 3);
  MoveToHugePages(block.get(), kHugePageBytes);
  bool same = true;
  for (size_t i = 0; i < kHugePageBytes; ++i)
    same = same && block.get()[i] == static_cast<uint8_t>(i * 7 >> 3);
  CHECK(same);
}

}  // namespace
}  // namespace penstock::testing
