#include "io/parquet/snappy_block.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"

namespace penstock {
namespace {

// An element of three bytes gives 64 at most.
constexpr uint64_t kMaxRatio = 22;
// Copied at once where there is room for it, whatever a copy's length.
constexpr size_t kCopy = 16;

// The varint in front, and where the elements begin; false where there is none.
bool ReadSize(absl::Span<const uint8_t> block, uint64_t* size, size_t* begin) {
  *size = 0;
  for (size_t i = 0; i < block.size() && i < 5; ++i) {
    *size |= uint64_t{block[i] & 0x7Fu} << (7 * i);
    if (block[i] >= 0x80) continue;
    *begin = i + 1;
    return *size <= UINT32_MAX;
  }
  return false;
}

// A number of one to four bytes.
size_t Load(const uint8_t* at, size_t bytes) {
  uint32_t value = 0;
  std::memcpy(&value, at, bytes);
  return value;
}

// Copies what lies `offset` bytes back; it may be made by the copy itself. REQUIRES: `length` bytes
// have room in front of `end`.
void CopyBack(uint8_t* out, const uint8_t* end, size_t offset, size_t length) {
  const uint8_t* from = out - offset;
  if (offset >= kCopy && static_cast<size_t>(end - out) >= length + kCopy) {
    for (size_t i = 0; i < length; i += kCopy) std::memcpy(out + i, from + i, kCopy);
    return;
  }
  // What is there is repeated: each time twice as much.
  while (length > 0) {
    const size_t count = std::min(length, static_cast<size_t>(out - from));
    std::memcpy(out, from, count);
    out += count;
    length -= count;
  }
}

// The end of what was written; null where the elements are none, or hold more.
uint8_t* Unpack(const uint8_t* in, const uint8_t* in_end, uint8_t* out, const uint8_t* end) {
  const uint8_t* const first = out;
  const uint8_t* looked = out;
  while (in < in_end) {
    if (static_cast<size_t>(out - looked) > kPieceBytes) {
      CheckStop();
      looked = out;
    }
    const uint8_t tag = *in++;
    const auto in_left = static_cast<size_t>(in_end - in);
    const auto room = static_cast<size_t>(end - out);
    if ((tag & 3) == 0) {
      size_t length = (tag >> 2) + 1;
      if (length <= kCopy && in_left >= kCopy && room >= kCopy) {
        std::memcpy(out, in, kCopy);
        in += length;
        out += length;
        continue;
      }
      size_t behind = 0;
      if (length > 60) {
        behind = length - 60;
        if (behind > in_left) return nullptr;
        length = Load(in, behind) + 1;
      }
      if (length > in_left - behind || length > room) return nullptr;
      CopyInPieces(out, in + behind, length);
      in += behind + length;
      out += length;
      continue;
    }
    const size_t behind = (tag & 3) == 3 ? 4 : tag & 3;
    if (behind > in_left) return nullptr;
    const size_t length = (tag & 3) == 1 ? (tag >> 2 & 7) + 4 : (tag >> 2) + 1;
    size_t offset = Load(in, behind);
    if ((tag & 3) == 1) offset |= static_cast<size_t>(tag >> 5) << 8;
    in += behind;
    if (offset == 0 || offset > static_cast<size_t>(out - first) || length > room) return nullptr;
    CopyBack(out, end, offset, length);
    out += length;
  }
  return out;
}

}  // namespace

absl::Status CheckSnappySize(absl::Span<const uint8_t> block, uint64_t plain_bytes) {
  uint64_t size = 0;
  size_t begin = 0;
  if (!ReadSize(block, &size, &begin)) return absl::DataLossError("it is no Snappy block");
  if (size != plain_bytes) {
    return absl::DataLossError(
        absl::StrCat("its Snappy block says that it holds ", size, " bytes, not ", plain_bytes));
  }
  if (size / kMaxRatio > block.size()) {
    return absl::DataLossError(absl::StrCat("its Snappy block says that it holds ", size,
                                            " bytes, more than ", block.size(), " can"));
  }
  return absl::OkStatus();
}

absl::Status UnpackSnappyBlock(absl::Span<const uint8_t> block, absl::Span<uint8_t> plain) {
  if (absl::Status status = CheckSnappySize(block, plain.size()); !status.ok()) return status;
  uint64_t size = 0;
  size_t begin = 0;
  ReadSize(block, &size, &begin);
  if (plain.empty()) {
    return begin == block.size() ? absl::OkStatus()
                                 : absl::DataLossError("bytes stand behind its Snappy block");
  }
  const uint8_t* const end = plain.data() + plain.size();
  const uint8_t* const found =
      Unpack(block.data() + begin, block.data() + block.size(), plain.data(), end);
  if (found == nullptr)
    return absl::DataLossError("its Snappy block is damaged, or holds more bytes");
  if (found != end) {
    return absl::DataLossError(absl::StrCat("its Snappy block holds ", found - plain.data(),
                                            " bytes, not ", plain.size()));
  }
  return absl::OkStatus();
}

}  // namespace penstock
