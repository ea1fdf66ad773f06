// The filters of PNG rows of 8-bit samples, undone (PNG specification, third edition, section 9).
//
// Threads:  pure.
// Cost:     Up runs at memory's speed. The others wait for the pixel to the left: some 3 cycles a
//           pixel for Sub, 5 for Average, 9 for Paeth where pixels have 3 or 4 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::kernels {

inline constexpr int kPngFilters = 5;  // None, Sub, Up, Average, Paeth
// Bytes behind `row` and `above` that may be read, whatever they are.
inline constexpr size_t kUnfilterPadding = 4;

// Writes the plain bytes of a row. `above`: the plain row above it, zeros for the first. REQUIRES:
// 0 <= filter < kPngFilters; `bytes` is a multiple of pixel_bytes, which is 1 to 4; `out` overlaps
// neither.
void UnfilterRow(int filter, int pixel_bytes, const uint8_t* row, const uint8_t* above,
                 size_t bytes, uint8_t* out);

// The twin, which reads nothing behind its rows.
void UnfilterRowScalar(int filter, int pixel_bytes, const uint8_t* row, const uint8_t* above,
                       size_t bytes, uint8_t* out);

}  // namespace penstock::kernels
