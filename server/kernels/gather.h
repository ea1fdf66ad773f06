// Rearranges the elements of a row: out[i] = in[index[i]].
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::kernels {

// `element_bytes` is 1, 2, 4 or 8. Neither row needs an alignment; they must not overlap.
void Gather(const uint8_t* in, const int32_t* index, size_t elements, size_t element_bytes,
            uint8_t* out);

// The elements of a matrix, row by row, become those of its columns: out[c * rows + r] = in[r *
// columns + c].
void Transpose(const uint8_t* in, size_t rows, size_t columns, size_t element_bytes, uint8_t* out);

// Gather() of stretches of neighbouring elements: out's stretch i starts at in[start[i]].
void GatherRuns(const uint8_t* in, const int32_t* start, size_t runs, size_t run_bytes,
                size_t element_bytes, uint8_t* out);

}  // namespace penstock::kernels
