// Tables by the next bits of a stream that are made for one bit more by having each half say the
// same.
//
// Threads:  functions without state.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// Copies `count` entries, a power of two, to where none of them lies. (The compiler makes
// `rep movs` of memcpy where it knows the count to be even, which takes longer to begin than most
// of these take.)
template <typename Entry>
inline void CopyEntries(const Entry* from, size_t count, Entry* to) {
  typedef uint8_t Vector [[gnu::vector_size(32), gnu::aligned(1), gnu::may_alias]];
  constexpr size_t kStep = sizeof(Vector) / sizeof(Entry);
  if (count < kStep) {
    for (size_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  for (size_t i = 0; i < count; i += kStep)
    *reinterpret_cast<Vector*>(to + i) = *reinterpret_cast<const Vector*>(from + i);
}

}  // namespace penstock
