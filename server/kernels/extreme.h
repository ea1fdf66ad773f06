// The lesser or greater of two rows of values, place by place.
//
// Threads:  pure.
// Cost:     by vectors, as fast as the first cache gives the values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace penstock::kernels {

enum class Extreme : uint8_t { kLeast, kGreatest };

// best[i] = the lesser (the greater) of best[i] and values[i]. Of equal ones, as 0.0 and -0.0 are,
// best[i] stays; NaN is the lesser and the greater of anything.
using ExtremeCode = void (*)(void* best, const void* values, size_t count);

// For the current instruction set; flags are compared as bytes. Null for types that are no numbers,
// and for halves.
ExtremeCode FindExtreme(DType dtype, Extreme extreme);

}  // namespace penstock::kernels
