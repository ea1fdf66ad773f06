// What of a file is in memory, so that a read of it, or a look at its map, waits for no disk.
//
// mincore() answers for whole ranges, but truthfully only who owns the file or may write to it (and
// nobody whose system calls are filtered): to all others every page seems to be there. A trainer's
// data is often neither: a read-only volume of another user's. Those are answered by reads of
// single bytes that may not wait (RWF_NOWAIT).
//
// Threads:  any; no state.
// Cost:     one system call for 64 pages, or for each kProbeBytes.
#pragma once

#include <cstdint>

namespace penstock {

enum class PageCacheView : uint8_t {
  kPages,   // every page is told of
  kProbes,  // one in kProbeBytes
  kNone,    // nobody tells
};

// What can be seen of the file that is open as `fd` and has `size` bytes. A file that has grown
// meanwhile may be seen by less than that.
PageCacheView ViewOfPageCache(int fd, uint64_t size);

// How far the file is in memory from `offset` on: at most `end`, at least `offset`, which is also
// the answer where either lies beyond it. By single bytes: kProbeBytes apart, and the last one;
// what lies between two that are there is taken to be.
inline constexpr uint64_t kProbeBytes = 128 << 10;
uint64_t CachedUntil(int fd, uint64_t offset, uint64_t end);

}  // namespace penstock
