// Loops over all bytes or values of a row, in pieces with a look for a stop between two of them
// (base/stop_flag.h): a row may have 2^28 values, and even a copy of 1 GiB takes half a second.
//
// Threads:  functions without state.
// Cost:     what is no longer than a piece is done at once, without a look.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"
#include "base/stop_flag.h"

namespace penstock {

// Some milliseconds of a copy.
inline constexpr size_t kPieceBytes = size_t{8} << 20;
// And of a loop that takes a nanosecond or some for each value.
inline constexpr size_t kPieceValues = size_t{1} << 20;

// Calls each(first, how many) for all of `count` values in order.
template <typename Each>
void InPieces(size_t count, Each each, size_t piece = kPieceValues) {
  for (size_t first = 0; first < count; first += piece) {
    if (first > 0) CheckStop();
    each(first, std::min(piece, count - first));
  }
}

// As std::memcpy(); nothing may be copied from anywhere.
inline void CopyInPieces(void* to, const void* from, size_t bytes) {
  InPieces(
      bytes,
      [to, from](size_t first, size_t count) {
        std::memcpy(static_cast<uint8_t*>(to) + first, static_cast<const uint8_t*>(from) + first,
                    count);
      },
      kPieceBytes);
}

// As std::memset() with 0.
inline void ClearInPieces(void* to, size_t bytes) {
  InPieces(
      bytes,
      [to](size_t first, size_t count) {
        std::memset(static_cast<uint8_t*>(to) + first, 0, count);
      },
      kPieceBytes);
}

// Room for so many bytes more, where they are many: a long text that moves because it has none is
// copied without a look.
inline void MakeRoomFor(size_t bytes, std::string* in) {
  if (bytes > kPieceBytes && in->capacity() - in->size() < bytes)
    in->reserve(std::max(in->size() + bytes, in->capacity() * 2));
}

inline void AppendInPieces(std::string* to, absl::string_view text) {
  MakeRoomFor(text.size(), to);
  InPieces(
      text.size(), [&](size_t first, size_t count) { to->append(text.data() + first, count); },
      kPieceBytes);
}

// The first place from `at` on where a byte is one that `is` says, or the text's end.
template <typename Is>
size_t FindInPieces(absl::string_view text, size_t at, const Is& is) {
  while (at < text.size()) {
    const size_t end = std::min(text.size(), at + kPieceValues);
    while (at < end && !is(text[at])) ++at;
    if (at < end) return at;
    CheckStop();
  }
  return text.size();
}

}  // namespace penstock
