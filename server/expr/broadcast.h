// NumPy's broadcasting of shapes: aligned at the last axis, an axis of one repeats.
//
// Threads:  safe from any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "base/signature.h"

namespace penstock::expr {

// What the two broadcast to; nullopt when they do not match. A size that only the data tells must
// turn out to match.
std::optional<Shape> BroadcastShapes(const Shape& a, const Shape& b);

// For each element of `to`, in C order, which element of a tensor of shape `from` it is. REQUIRES:
// `from` broadcasts to `to`, whose sizes are known; room for all elements of `to`.
void BroadcastPlaces(const Shape& from, const Shape& to, int64_t* places);

}  // namespace penstock::expr
