#include "base/streaming_copy.h"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace penstock {

void CopyPastCaches(uint8_t* to, const uint8_t* from, size_t bytes) {
#if defined(__SSE2__)
  // Whole lines alone go past the caches.
  constexpr size_t kLine = 64;
  const size_t head = std::min(bytes, (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from, head);
  to += head;
  from += head;
  bytes -= head;
  for (; bytes >= kLine; bytes -= kLine, to += kLine, from += kLine) {
    __m128i parts[4];
    for (int i = 0; i < 4; ++i)
      parts[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i);
    for (int i = 0; i < 4; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i, parts[i]);
  }
  // They are ordered by nothing else.
  _mm_sfence();
#endif
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace penstock
