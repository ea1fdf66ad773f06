// Bilinear resizing of images with interleaved channels, by the arithmetic of tf.image.resize:
// half-pixel centres, no antialiasing, float32 in TensorFlow's order of operations.
//
//   position = (i + 0.5) * (in / out) - 0.5         lower = max(floor(position), 0)
//   lerp     = position - floor(position)           upper = min(ceil(position), in - 1)
//   top      = tl + (tr - tl) * lerp_x              (the same for the bottom row)
//   result   = top + (bottom - top) * lerp_y
//
// Threads:  functions without state; a BilinearRow is constant once made.
// Owns:     nothing: a BilinearRow lies in the caller's memory.
// Limits:   sides of at least 1; width * channels below 2^31. Source rows need no bytes behind
//           them; rows that are written need kBilinearPadding.
// Cost:     about 0.3 ns an output element and source row of uint8 while no window of four results
//           spans more than 16 bytes (a shrinking by up to 3 with three channels), else 1 ns;
//           float32 rows 1 ns.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::kernels {

// Bytes behind a written row that may be overwritten.
inline constexpr size_t kBilinearPadding = 64;

// Where one output position lies between two input positions.
struct BilinearTap {
  int32_t lower;
  int32_t upper;
  float lerp;
};

// Fills taps[0, count) with those of the output positions from `first` on.
void MakeBilinearTaps(int64_t in, int64_t out, int64_t first, int64_t count, BilinearTap* taps);
inline void MakeBilinearTaps(int64_t in, int64_t out, BilinearTap* taps) {
  MakeBilinearTaps(in, out, 0, out, taps);
}

// How to interpolate along one row.
struct BilinearRow {
  int channels = 0;
  int64_t width_in = 0;
  int64_t width_out = 0;
  const BilinearTap* taps = nullptr;

  // For rows of uint8, by windows: results 4b .. 4b+3 come from the 16 bytes at `offsets[b]`. Byte
  // 4i of block b in `shuffles` tells which of them is the left source of result i, byte 4i + 2 the
  // right one (bytes 4i + 1 and 4i + 3 are 0x80, which gives zero). `lerps` has one entry a result.
  // Null where some window does not fit.
  const int32_t* offsets = nullptr;
  const uint8_t* shuffles = nullptr;
  const float* lerps = nullptr;
  int64_t num_blocks = 0;  // a multiple of 4; what the last ones give beyond the row means nothing
};

// Bytes that MakeBilinearRowPart() needs.
size_t BilinearRowBytes(int64_t width_out, int channels);

// How to make `count` columns from `first` on of a row of `width_out` columns, from right to left
// if `mirrored`: the result's width_out is `count`, as is that which `memory` has been asked for.
// `memory` is aligned to 64 bytes and must live as long as the result is used.
BilinearRow MakeBilinearRowPart(int64_t width_in, int64_t width_out, int64_t first, int64_t count,
                                int channels, bool mirrored, uint8_t* memory);

// Interpolates along one row: width_in * channels values to width_out * channels floats.
void ResizeRow(const BilinearRow& row, const uint8_t* in, float* out);
void ResizeRow(const BilinearRow& row, const float* in, float* out);

// out[i] = top[i] + (bottom[i] - top[i]) * lerp, rounded up to whole vectors: at most
// kBilinearPadding bytes more are read and written.
void LerpRows(const float* top, const float* bottom, float lerp, size_t count, float* out);

// The scalar twins, which define the bits.
void ResizeRowScalar(const BilinearRow& row, const uint8_t* in, float* out);
void ResizeRowScalar(const BilinearRow& row, const float* in, float* out);
void LerpRowsScalar(const float* top, const float* bottom, float lerp, size_t count, float* out);

}  // namespace penstock::kernels
