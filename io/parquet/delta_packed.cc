#include "io/parquet/delta_packed.h"

#include <algorithm>
#include <cstring>

#include "io/parquet/rle_hybrid.h"

namespace penstock {
namespace {

constexpr uint32_t kMaxBits = 64;
constexpr size_t kAtOnce = 64;

// As UnpackBits(), of any number of bits.
void UnpackWide(absl::Span<const uint8_t> bytes, uint32_t bits, uint64_t first, size_t count,
                uint64_t* out) {
  if (bits <= kMaxHybridBits) {
    uint32_t narrow[kAtOnce];
    UnpackBits(bytes, bits, first, count, narrow);
    std::copy_n(narrow, count, out);
    return;
  }
  const uint64_t mask = bits == kMaxBits ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  for (uint64_t number = first; number < first + count; ++number) {
    const uint64_t begin = number * bits / 8;
    const uint32_t shift = number * bits % 8;
    uint64_t words[2] = {0, 0};
    std::memcpy(words, bytes.data() + begin, std::min<uint64_t>(9, bytes.size() - begin));
    uint64_t word = words[0] >> shift;
    if (shift > 0) word |= words[1] << (64 - shift);
    *out++ = word & mask;
  }
}

}  // namespace

bool DeltaPacked::Varint(uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (at_ == end_) return false;
    const uint8_t byte = *at_++;
    if (shift == 63 && byte > 1) return false;
    *value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool DeltaPacked::Zigzag(int64_t* value) {
  uint64_t word = 0;
  if (!Varint(&word)) return false;
  *value = static_cast<int64_t>(word >> 1 ^ (0 - (word & 1)));
  return true;
}

bool DeltaPacked::Begin() {
  uint64_t block = 0;
  int64_t first = 0;
  if (!Varint(&block) || !Varint(&miniblocks_) || !Varint(&num_values_) || !Zigzag(&first))
    return false;
  if (miniblocks_ == 0 || miniblocks_ > kMaxDeltaMiniblocks || block % miniblocks_ != 0)
    return false;
  miniblock_ = block / miniblocks_;
  if (miniblock_ == 0 || miniblock_ > kMaxDeltaMiniblock || miniblock_ % 8 != 0) return false;
  last_ = static_cast<uint64_t>(first);
  which_ = miniblocks_;
  used_ = miniblock_;
  return true;
}

bool DeltaPacked::NextBlock() {
  int64_t least = 0;
  if (!Zigzag(&least) || static_cast<uint64_t>(end_ - at_) < miniblocks_) return false;
  least_ = static_cast<uint64_t>(least);
  all_bits_ = at_;
  at_ += miniblocks_;
  which_ = 0;
  return true;
}

bool DeltaPacked::NextMiniblock() {
  at_ += miniblock_bytes_;
  miniblock_bytes_ = 0;
  if (which_ == miniblocks_ && !NextBlock()) return false;
  bits_ = all_bits_[which_++];
  const uint64_t bytes = miniblock_ / 8 * bits_;
  if (bits_ > kMaxBits || static_cast<uint64_t>(end_ - at_) < bytes) return false;
  miniblock_bytes_ = bytes;
  used_ = 0;
  return true;
}

bool DeltaPacked::Read(int64_t* out, size_t count) {
  if (count > num_values_ - done_) return false;
  if (count > 0 && done_ == 0) {
    *out++ = static_cast<int64_t>(last_);
    ++done_;
    --count;
  }
  while (count > 0) {
    if (used_ == miniblock_ && !NextMiniblock()) return false;
    const auto some = static_cast<size_t>(std::min<uint64_t>({count, miniblock_ - used_, kAtOnce}));
    uint64_t differences[kAtOnce];
    UnpackWide({at_, static_cast<size_t>(miniblock_bytes_)}, bits_, used_, some, differences);
    uint64_t last = last_;
    for (size_t i = 0; i < some; ++i) {
      last += differences[i] + least_;
      out[i] = static_cast<int64_t>(last);
    }
    last_ = last;
    out += some;
    used_ += some;
    done_ += some;
    count -= some;
  }
  return true;
}

bool DeltaPacked::Skip(uint64_t count) {
  int64_t passed[kAtOnce];
  while (count > 0) {
    const auto some = static_cast<size_t>(std::min<uint64_t>(count, kAtOnce));
    if (!Read(passed, some)) return false;
    count -= some;
  }
  return true;
}

const uint8_t* DeltaPacked::end() const { return at_ + miniblock_bytes_; }

}  // namespace penstock
