// A row of pixels in reverse.
//
// Threads:  pure.
// Cost:     about a cycle for two to five pixels of up to 16 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::kernels {

// Pixel i of `out` is pixel count - 1 - i of `in`, `pixel_bytes` each. They do not overlap; no byte
// outside of them is touched.
void MirrorPixels(const uint8_t* in, size_t count, size_t pixel_bytes, uint8_t* out);

// The scalar twin, which defines the bytes.
void MirrorPixelsScalar(const uint8_t* in, size_t count, size_t pixel_bytes, uint8_t* out);

}  // namespace penstock::kernels
