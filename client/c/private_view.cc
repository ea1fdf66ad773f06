#include "client/c/private_view.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ring/aligned_map.h"

namespace penstock_client {

PrivateView::~PrivateView() {
  if (is_mapped()) munmap(memory_, bytes_);
}

bool PrivateView::Map(int fd, const uint8_t* first, uint64_t bytes) {
  first_ = first;
  bytes_ = bytes;
  void* const memory =
      penstock::ring::MapAligned(fd, bytes, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE);
  if (memory == MAP_FAILED) return false;
  // A program may lock all memory that it will have (mlockall): of every page that it may write the
  // kernel would make a copy now.
  if (munlock(memory, bytes) != 0 || mprotect(memory, bytes, PROT_READ | PROT_WRITE) != 0) {
    const int error = errno;
    munmap(memory, bytes);
    errno = error;
    return false;
  }
  memory_ = static_cast<uint8_t*>(memory);
  return true;
}

uint8_t* PrivateView::Find(const void* data) const {
  const auto* byte = static_cast<const uint8_t*>(data);
  return first_ <= byte && byte < first_ + bytes_ ? memory_ + (byte - first_) : nullptr;
}

void PrivateView::Drop(const uint8_t* data, uint64_t bytes) const {
  uint8_t* const memory = memory_ + (data - first_);
  if (madvise(memory, bytes, MADV_DONTNEED) == 0) return;
  // It was locked after Map().
  if (munlock(memory, bytes) == 0 && madvise(memory, bytes, MADV_DONTNEED) == 0) return;
  std::fprintf(stderr, "penstock: what was written to a batch cannot be dropped: %s\n",
               std::strerror(errno));
  std::abort();
}

}  // namespace penstock_client
