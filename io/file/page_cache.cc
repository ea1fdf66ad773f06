#include "io/file/page_cache.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace penstock {
namespace {

// Whether the byte can be read without waiting; `known` says whether that could be found out.
bool IsCached(int fd, uint64_t offset, bool* known = nullptr) {
  char byte;
  const iovec part = {&byte, 1};
  ssize_t count;
  do {
    count = preadv2(fd, &part, 1, static_cast<off_t>(offset), RWF_NOWAIT);
  } while (count < 0 && errno == EINTR);
  if (known != nullptr) *known = count >= 0 || errno == EAGAIN;
  return count == 1;
}

// Behind the end of the file there is no page: who is told of one is told nothing.
bool IsToldOfPages(int fd, uint64_t size) {
  const uint64_t page = sysconf(_SC_PAGESIZE);
  void* const behind = mmap(nullptr, page, PROT_READ, MAP_SHARED, fd,
                            static_cast<off_t>((size + page - 1) / page * page));
  if (behind == MAP_FAILED) return false;
  unsigned char is_there = 1;
  const bool told = mincore(behind, page, &is_there) == 0 && (is_there & 1) == 0;
  munmap(behind, page);
  return told;
}

}  // namespace

PageCacheView ViewOfPageCache(int fd, uint64_t size) {
  if (IsToldOfPages(fd, size)) return PageCacheView::kPages;
  bool known = false;
  IsCached(fd, 0, &known);
  return known ? PageCacheView::kProbes : PageCacheView::kNone;
}

uint64_t CachedUntil(int fd, uint64_t offset, uint64_t end) {
  uint64_t until = offset;
  for (uint64_t at = offset; at < end; at = std::min(at + kProbeBytes, end - 1)) {
    if (!IsCached(fd, at)) return until;
    until = at + 1;
    if (until == end) break;
  }
  return until;
}

}  // namespace penstock
