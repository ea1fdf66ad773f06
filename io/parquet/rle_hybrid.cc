#include "io/parquet/rle_hybrid.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace penstock {
namespace {

constexpr size_t kGroup = 8;

// Eight numbers of kBits bits from a byte on. Reads up to 8 bytes behind them.
template <uint32_t kBits>
void UnpackGroup(const uint8_t* from, uint32_t* out) {
  constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;
  for (uint32_t i = 0; i < kGroup; ++i) {
    uint64_t word;
    std::memcpy(&word, from + i * kBits / 8, sizeof(word));
    out[i] = static_cast<uint32_t>(word >> (i * kBits % 8) & kMask);
  }
}

using UnpackGroupOf = void (*)(const uint8_t*, uint32_t*);

template <size_t... kBits>
constexpr std::array<UnpackGroupOf, sizeof...(kBits)> AllGroups(std::index_sequence<kBits...>) {
  return {&UnpackGroup<static_cast<uint32_t>(kBits)>...};
}
constexpr auto kUnpackGroup = AllGroups(std::make_index_sequence<kMaxHybridBits + 1>());

// How far UnpackGroup may read.
uint64_t GroupReads(uint32_t bits) { return bits + sizeof(uint64_t); }

uint32_t OneOf(absl::Span<const uint8_t> bytes, uint32_t bits, uint64_t number) {
  const uint64_t first_bit = number * bits;
  const uint64_t begin = first_bit / 8;
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + begin, std::min<uint64_t>(sizeof(word), bytes.size() - begin));
  return static_cast<uint32_t>(word >> (first_bit % 8) & ((uint64_t{1} << bits) - 1));
}

}  // namespace

void UnpackBits(absl::Span<const uint8_t> bytes, uint32_t bits, uint64_t first, size_t count,
                uint32_t* out) {
  if (bits == 0) {
    std::fill_n(out, count, 0);
    return;
  }
  const UnpackGroupOf unpack = kUnpackGroup[bits];
  const uint64_t end = first + count;
  uint64_t number = first;
  for (; number < end && number % kGroup != 0; ++number) *out++ = OneOf(bytes, bits, number);
  for (; number + kGroup <= end; number += kGroup, out += kGroup) {
    const uint64_t begin = number / kGroup * bits;
    if (bytes.size() - begin < GroupReads(bits)) break;
    unpack(bytes.data() + begin, out);
  }
  for (; number < end; ++number) *out++ = OneOf(bytes, bits, number);
}

bool RleHybrid::Next() {
  while (left_ == 0) {
    if (is_packed_) at_ = next_;
    is_packed_ = false;
    uint64_t head = 0;
    for (int shift = 0;; shift += 7) {
      // Of 32 bits, as the format has it.
      if (at_ == end_ || shift > 28) return false;
      const uint8_t byte = *at_++;
      head |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) break;
    }
    if (head > UINT32_MAX) return false;
    if ((head & 1) == 0) {
      const size_t bytes = (bits_ + 7) / 8;
      if (static_cast<size_t>(end_ - at_) < bytes) return false;
      number_ = 0;
      std::memcpy(&number_, at_, bytes);
      if (bits_ < 32 && number_ >> bits_ != 0) return false;
      at_ += bytes;
      left_ = head >> 1;
      continue;
    }
    is_packed_ = true;
    used_ = 0;
    const uint64_t groups = head >> 1;
    const auto there = static_cast<uint64_t>(end_ - at_);
    // Some writers leave out what pads the last group.
    const uint64_t bytes = std::min(groups * bits_, there);
    left_ = bits_ == 0 ? groups * kGroup : std::min(groups * kGroup, bytes * 8 / bits_);
    next_ = at_ + bytes;
    if (left_ == 0 && groups > 0) return false;
  }
  return true;
}

void RleHybrid::ReadPacked(uint32_t* out, size_t count) {
  UnpackBits({at_, static_cast<size_t>(next_ - at_)}, bits_, used_, count, out);
  used_ += count;
  left_ -= count;
}

bool RleHybrid::Read(uint32_t* out, size_t count) {
  while (count > 0) {
    if (!Next()) return false;
    const auto some = static_cast<size_t>(std::min<uint64_t>(count, left_));
    if (is_packed_) {
      ReadPacked(out, some);
    } else {
      std::fill_n(out, some, number_);
      left_ -= some;
    }
    out += some;
    count -= some;
  }
  return true;
}

bool RleHybrid::Skip(uint64_t count) {
  while (count > 0) {
    if (!Next()) return false;
    const uint64_t some = std::min(count, left_);
    used_ += some;
    left_ -= some;
    count -= some;
  }
  return true;
}

bool RleHybrid::TakeRun(uint64_t count, uint64_t* run, uint32_t* number, uint64_t* packed) {
  if (!Next()) return false;
  *run = 0;
  *packed = 0;
  if (is_packed_) {
    *packed = std::min(count, left_);
    return true;
  }
  *run = std::min(count, left_);
  *number = number_;
  left_ -= *run;
  return true;
}

}  // namespace penstock
