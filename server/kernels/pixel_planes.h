// Interleaved pixels to planes.
//
// Threads:  pure.
// Cost:     0.1 ns a pixel by AVX-512, 0.25 by SSE4.2.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::kernels {

// Byte c of pixel i goes to out[c * pixels + i], of three bytes a pixel. The two do not overlap.
void SplitThreePlanes(const uint8_t* in, size_t pixels, uint8_t* out);

}  // namespace penstock::kernels
