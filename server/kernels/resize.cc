#include "server/kernels/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "server/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/resize.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// 16-byte blocks of a vector that hold windows side by side. Where the size of a vector is not
// known to the compiler, one.
constexpr size_t kBlocks = HWY_HAVE_SCALABLE ? 1 : std::clamp<size_t>(HWY_MAX_BYTES / 16, 1, 4);

using Bytes = hn::FixedTag<uint8_t, 16 * kBlocks>;
using Words = hn::Repartition<int32_t, Bytes>;
using Floats = hn::Repartition<float, Bytes>;

HWY_INLINE hn::Vec<Bytes> LoadWindows(const uint8_t* in, const int32_t* offsets) {
  const hn::FixedTag<uint8_t, 16> one;
#if HWY_HAVE_SCALABLE || HWY_MAX_BYTES == 16
  return hn::LoadU(one, in + offsets[0]);
#elif HWY_MAX_BYTES == 32
  return hn::Combine(Bytes(), hn::LoadU(one, in + offsets[1]), hn::LoadU(one, in + offsets[0]));
#else
  const hn::FixedTag<uint8_t, 32> two;
  return hn::Combine(
      Bytes(), hn::Combine(two, hn::LoadU(one, in + offsets[3]), hn::LoadU(one, in + offsets[2])),
      hn::Combine(two, hn::LoadU(one, in + offsets[1]), hn::LoadU(one, in + offsets[0])));
#endif
}

void ResizeRow(const BilinearRow& row, const uint8_t* HWY_RESTRICT in, float* HWY_RESTRICT out) {
  const Bytes bytes;
  const Words words;
  const Floats floats;
  const auto low_half = hn::Set(words, 0xffff);
  for (int64_t block = 0; block < row.num_blocks; block += kBlocks) {
    const auto windows = LoadWindows(in, row.offsets + block);
    const auto shuffle = hn::Load(bytes, row.shuffles + 16 * block);
    const auto pairs = hn::BitCast(words, hn::TableLookupBytes(windows, shuffle));
    const auto left = hn::And(pairs, low_half);
    // Both are below 256: their difference as integers is that of their floats.
    const auto difference = hn::Sub(hn::ShiftRight<16>(pairs), left);
    const auto lerp = hn::Load(floats, row.lerps + 4 * block);
    const auto step = hn::Mul(hn::ConvertTo(floats, difference), lerp);
    hn::StoreU(hn::Add(hn::ConvertTo(floats, left), step), floats, out + 4 * block);
  }
}

void LerpRows(const float* HWY_RESTRICT top, const float* HWY_RESTRICT bottom, float lerp,
              size_t count, float* HWY_RESTRICT out) {
  const Floats floats;
  const auto factor = hn::Set(floats, lerp);
  for (size_t i = 0; i < count; i += hn::Lanes(floats)) {
    const auto t = hn::LoadU(floats, top + i);
    const auto b = hn::LoadU(floats, bottom + i);
    hn::StoreU(hn::Add(t, hn::Mul(hn::Sub(b, t), factor)), floats, out + i);
  }
}

}  // namespace
}  // namespace penstock::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {
namespace {

HWY_EXPORT(ResizeRow);
HWY_EXPORT(LerpRows);

constexpr int64_t kWindowBytes = 16;
constexpr int64_t kBlockResults = 4;
constexpr uint8_t kZero = 0x80;

constexpr size_t RoundUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

int64_t NumBlocks(int64_t width_out, int channels) {
  return (width_out * channels + 4 * kBlockResults - 1) / (4 * kBlockResults) * 4;
}

// `channels`: the row's, as a constant where it can be one.
template <typename Channels, typename T>
void ResizePixels(const BilinearRow& row, const T* in, float* out, Channels channels) {
  for (int64_t x = 0; x < row.width_out; ++x, out += channels) {
    const BilinearTap tap = row.taps[x];
    const T* const left = in + int64_t{tap.lower} * channels;
    const T* const right = in + int64_t{tap.upper} * channels;
    for (int c = 0; c < channels; ++c) {
      const float l = static_cast<float>(left[c]);
      const float r = static_cast<float>(right[c]);
      out[c] = l + (r - l) * tap.lerp;
    }
  }
}

template <typename T>
void ResizeAnyRow(const BilinearRow& row, const T* in, float* out) {
  switch (row.channels) {
    case 1:
      return ResizePixels(row, in, out, std::integral_constant<int, 1>());
    case 3:
      return ResizePixels(row, in, out, std::integral_constant<int, 3>());
    case 4:
      return ResizePixels(row, in, out, std::integral_constant<int, 4>());
    default:
      return ResizePixels(row, in, out, row.channels);
  }
}

// Fills the windows; false when one of them does not fit.
bool MakeWindows(const BilinearRow& row, int32_t* offsets, uint8_t* shuffles, float* lerps) {
  const int64_t row_bytes = row.width_in * row.channels;
  const int64_t results = row.width_out * row.channels;
  if (row_bytes < kWindowBytes) return false;
  int64_t x = 0;
  int channel = 0;
  for (int64_t block = 0; block < row.num_blocks; ++block) {
    // It begins at the leftmost pixel of its results, the last one's of a mirrored row.
    const int64_t last =
        std::min(x + (channel + kBlockResults - 1) / row.channels, row.width_out - 1);
    const int64_t pixel = x < row.width_out ? std::min(row.taps[x].lower, row.taps[last].lower) : 0;
    // A window is moved to the left rather than reach beyond the row.
    const int64_t start = std::min<int64_t>(pixel * row.channels, row_bytes - kWindowBytes);
    offsets[block] = static_cast<int32_t>(start);
    for (int64_t i = 0; i < kBlockResults; ++i) {
      uint8_t* const lane = shuffles + kWindowBytes * block + 4 * i;
      float* const lerp = lerps + kBlockResults * block + i;
      if (kBlockResults * block + i >= results) {
        std::memset(lane, kZero, 4);
        *lerp = 0;
        continue;
      }
      const BilinearTap& tap = row.taps[x];
      const int64_t left = int64_t{tap.lower} * row.channels + channel - start;
      const int64_t right = int64_t{tap.upper} * row.channels + channel - start;
      if (right >= kWindowBytes) return false;
      lane[0] = static_cast<uint8_t>(left);
      lane[1] = kZero;
      lane[2] = static_cast<uint8_t>(right);
      lane[3] = kZero;
      *lerp = tap.lerp;
      if (++channel == row.channels) {
        channel = 0;
        ++x;
      }
    }
  }
  return true;
}

}  // namespace

void MakeBilinearTaps(int64_t in, int64_t out, int64_t first, int64_t count, BilinearTap* taps) {
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  for (int64_t i = 0; i < count; ++i) {
    const float position = (static_cast<float>(first + i) + 0.5f) * scale - 0.5f;
    const float floor = std::floor(position);
    const int64_t lower = static_cast<int64_t>(floor);
    const int64_t upper = static_cast<int64_t>(std::ceil(position));
    taps[i].lower = static_cast<int32_t>(std::clamp<int64_t>(lower, 0, in - 1));
    taps[i].upper = static_cast<int32_t>(std::clamp<int64_t>(upper, 0, in - 1));
    taps[i].lerp = position - floor;
  }
}

size_t BilinearRowBytes(int64_t width_out, int channels) {
  const size_t blocks = NumBlocks(width_out, channels);
  return RoundUp(width_out * sizeof(BilinearTap)) + RoundUp(blocks * sizeof(int32_t)) +
         RoundUp(blocks * kWindowBytes) + RoundUp(blocks * kBlockResults * sizeof(float));
}

BilinearRow MakeBilinearRowPart(int64_t width_in, int64_t width_out, int64_t first, int64_t count,
                                int channels, bool mirrored, uint8_t* memory) {
  BilinearRow row;
  row.channels = channels;
  row.width_in = width_in;
  row.width_out = count;
  row.num_blocks = NumBlocks(count, channels);
  auto* const taps = reinterpret_cast<BilinearTap*>(memory);
  memory += RoundUp(count * sizeof(BilinearTap));
  auto* const offsets = reinterpret_cast<int32_t*>(memory);
  memory += RoundUp(row.num_blocks * sizeof(int32_t));
  uint8_t* const shuffles = memory;
  memory += RoundUp(row.num_blocks * kWindowBytes);
  auto* const lerps = reinterpret_cast<float*>(memory);
  MakeBilinearTaps(width_in, width_out, first, count, taps);
  if (mirrored) std::reverse(taps, taps + count);
  row.taps = taps;
  if (MakeWindows(row, offsets, shuffles, lerps)) {
    row.offsets = offsets;
    row.shuffles = shuffles;
    row.lerps = lerps;
  }
  return row;
}

void ResizeRow(const BilinearRow& row, const uint8_t* in, float* out) {
  if (row.offsets == nullptr) return ResizeAnyRow(row, in, out);
  HWY_DYNAMIC_DISPATCH(ResizeRow)(row, in, out);
}

void ResizeRow(const BilinearRow& row, const float* in, float* out) { ResizeAnyRow(row, in, out); }

void LerpRows(const float* top, const float* bottom, float lerp, size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(LerpRows)(top, bottom, lerp, count, out);
}

void ResizeRowScalar(const BilinearRow& row, const uint8_t* in, float* out) {
  ResizeAnyRow(row, in, out);
}

void ResizeRowScalar(const BilinearRow& row, const float* in, float* out) {
  ResizeAnyRow(row, in, out);
}

void LerpRowsScalar(const float* top, const float* bottom, float lerp, size_t count, float* out) {
  for (size_t i = 0; i < count; ++i) out[i] = top[i] + (bottom[i] - top[i]) * lerp;
}

}  // namespace penstock::kernels
#endif  // HWY_ONCE
