#include "client/c/private_view.h"

#include <sys/mman.h>

#include <cstdlib>

namespace penstock_client {
namespace {

constexpr uint64_t kHugePageBytes = 2 << 20;

// A map at the same distance from a huge page's begin as `first`, so that huge pages of the file fit it too.
uint8_t* MapAligned(int fd, const uint8_t* first, uint64_t bytes) {
  const uint64_t room = bytes + kHugePageBytes;
  void* reserved =
      mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  auto* begin = static_cast<uint8_t*>(reserved);
  const uint64_t skew =
      (reinterpret_cast<uintptr_t>(first) - reinterpret_cast<uintptr_t>(begin)) % kHugePageBytes;
  void* memory = mmap(begin + skew, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, fd, 0);
  if (memory == MAP_FAILED) {
    munmap(reserved, room);
    return nullptr;
  }
  if (skew > 0) munmap(begin, skew);
  const uint64_t end = (skew + bytes + 4095) / 4096 * 4096;
  if (end < room) munmap(begin + end, room - end);
  return static_cast<uint8_t*>(memory);
}

}  // namespace

PrivateView::~PrivateView() {
  if (is_mapped()) munmap(memory_, bytes_);
}

bool PrivateView::Map(int fd, const uint8_t* first, uint64_t bytes) {
  first_ = first;
  bytes_ = bytes;
  memory_ = MapAligned(fd, first, bytes);
  return is_mapped();
}

uint8_t* PrivateView::Find(const void* data) const {
  const auto* byte = static_cast<const uint8_t*>(data);
  return first_ <= byte && byte < first_ + bytes_ ? memory_ + (byte - first_) : nullptr;
}

void PrivateView::Drop(const uint8_t* data, uint64_t bytes) const {
  // Old bytes in the next batch would be worse than an end.
  if (madvise(memory_ + (data - first_), bytes, MADV_DONTNEED) != 0) std::abort();
}

}  // namespace penstock_client
