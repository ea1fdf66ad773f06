#include "ring/aligned_map.h"

#include <sys/mman.h>
#include <unistd.h>

namespace penstock::ring {

void* MapAligned(int fd, uint64_t bytes, int protection, int flags) {
  if (bytes < kHugePageBytes) return mmap(nullptr, bytes, protection, flags, fd, 0);
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t mapped_bytes = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  const uint64_t room_bytes = mapped_bytes + kHugePageBytes;
  void* const room =
      mmap(nullptr, room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return mmap(nullptr, bytes, protection, flags, fd, 0);
  const auto begin = reinterpret_cast<uintptr_t>(room);
  const uintptr_t address = (begin + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  void* const memory =
      mmap(reinterpret_cast<void*>(address), bytes, protection, flags | MAP_FIXED, fd, 0);
  if (memory == MAP_FAILED) {
    munmap(room, room_bytes);
    return memory;
  }
  if (address > begin) munmap(room, address - begin);
  const uintptr_t end = address + mapped_bytes;
  if (end < begin + room_bytes) munmap(reinterpret_cast<void*>(end), begin + room_bytes - end);
  return memory;
}

}  // namespace penstock::ring
