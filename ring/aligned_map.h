// Maps of shared memory that begin where huge pages do: a file's huge pages are then mapped as
// such, one entry of the translation buffer for 2 MiB instead of 512.
//
// Threads:  any; no state.
// Owns:     nothing: the caller unmaps.
#pragma once

#include <cstdint>

namespace penstock::ring {

inline constexpr uint64_t kHugePageBytes = 2 << 20;

// As mmap() of the whole file at any address, MAP_FAILED and errno included. Without room for the
// alignment it begins anywhere.
void* MapAligned(int fd, uint64_t bytes, int protection, int flags);

}  // namespace penstock::ring
