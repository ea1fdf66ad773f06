// The image data of plain PNG files, of 8-bit samples, not interlaced, without palette: what libpng
// would give, in a third of its time.
//
// Threads:  safe from any thread.
// Limits:   those of server/codec/png.h, which the caller has checked.
// Cost:     ISA-L's inflate, one pass of CRC-32, server/kernels/unfilter.h, and memory for the
//           inflated rows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// Decodes a whole file of `height` rows of `row_bytes` bytes. False for anything unusual in it,
// behind which pixels are undefined: a checksum that fails, a chunk of another kind behind the
// image, data too short or too long. libpng then decides what it is.
bool DecodePlainPng(const uint8_t* file, size_t size, int height, size_t row_bytes, int pixel_bytes,
                    uint8_t* pixels);

}  // namespace penstock
