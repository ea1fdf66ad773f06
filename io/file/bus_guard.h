// The SIGBUS handler of mapped_file.h, and the table of address ranges that it guards.
//
// Threads:  any. The table is read by the handler, so it has no lock.
// Limits:   kMaxMappedFiles ranges.
#pragma once

#include <cstddef>
#include <optional>

namespace penstock {

// Guards [begin, begin + bytes), whole pages, from now on; installs the handler if it is not yet.
// Nothing when the table is full.
std::optional<size_t> GuardRange(const void* begin, size_t bytes);

// To be called before the range is unmapped.
void ReleaseRange(size_t slot);

// Whether a fault in the range was met.
bool RangeTorn(size_t slot);

}  // namespace penstock
