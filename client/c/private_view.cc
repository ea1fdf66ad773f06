#include "client/c/private_view.h"

#include <sys/mman.h>

#include <cstdlib>

#include "ring/aligned_map.h"

namespace penstock_client {

PrivateView::~PrivateView() {
  if (is_mapped()) munmap(memory_, bytes_);
}

bool PrivateView::Map(int fd, const uint8_t* first, uint64_t bytes) {
  first_ = first;
  bytes_ = bytes;
  void* const memory =
      penstock::ring::MapAligned(fd, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE);
  if (memory == MAP_FAILED) return false;
  memory_ = static_cast<uint8_t*>(memory);
  return true;
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
