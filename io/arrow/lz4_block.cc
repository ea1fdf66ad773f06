#include "io/arrow/lz4_block.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/in_pieces.h"

namespace penstock {
namespace {

constexpr size_t kLeastMatch = 4;
// Copied at once where there is room for it, whatever a copy's length.
constexpr size_t kCopy = 16;

// What is left of a length that four bits are too few for. False where the bytes end.
bool ReadLength(const uint8_t*& in, const uint8_t* end, size_t* length) {
  uint8_t more;
  do {
    if (in == end) return false;
    more = *in++;
    *length += more;
  } while (more == 255);
  return true;
}

// Copies what lies `offset` bytes back; it may be made by the copy itself. REQUIRES: `length` bytes
// have room in front of `end`.
void CopyMatch(uint8_t* out, const uint8_t* end, size_t offset, size_t length) {
  const uint8_t* const from = out - offset;
  if (offset >= kCopy && static_cast<size_t>(end - out) >= length + kCopy) {
    for (size_t i = 0; i < length; i += kCopy) std::memcpy(out + i, from + i, kCopy);
    return;
  }
  // What is there is repeated: each time twice as much.
  while (length > 0) {
    const size_t count = std::min({length, static_cast<size_t>(out - from), kPieceBytes});
    std::memcpy(out, from, count);
    if (count == kPieceBytes) CheckStop();
    out += count;
    length -= count;
  }
}

}  // namespace

uint8_t* UnpackLz4Block(absl::Span<const uint8_t> block, const uint8_t* first, uint8_t* out,
                        const uint8_t* end) {
  const uint8_t* in = block.data();
  const uint8_t* const in_end = in + block.size();
  const uint8_t* looked = out;
  while (in < in_end) {
    if (static_cast<size_t>(out - looked) > kPieceBytes) {
      CheckStop();
      looked = out;
    }
    const uint8_t token = *in++;
    size_t literals = token >> 4;
    if (literals == 15 && !ReadLength(in, in_end, &literals)) return nullptr;
    const auto in_left = static_cast<size_t>(in_end - in);
    const auto room = static_cast<size_t>(end - out);
    if (literals > in_left || literals > room) return nullptr;
    if (literals <= kCopy && in_left >= kCopy && room >= kCopy) {
      std::memcpy(out, in, kCopy);
    } else if (literals > 0) {
      CopyInPieces(out, in, literals);
    }
    in += literals;
    out += literals;
    // The last sequence has no match.
    if (in == in_end) return out;
    if (in_end - in < 2) return nullptr;
    const size_t offset = in[0] | static_cast<size_t>(in[1]) << 8;
    in += 2;
    size_t length = token & 15;
    if (length == 15 && !ReadLength(in, in_end, &length)) return nullptr;
    length += kLeastMatch;
    if (offset == 0 || offset > static_cast<size_t>(out - first) ||
        length > static_cast<size_t>(end - out))
      return nullptr;
    CopyMatch(out, end, offset, length);
    out += length;
  }
  return nullptr;
}

}  // namespace penstock
