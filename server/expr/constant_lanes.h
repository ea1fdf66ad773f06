// The values of a constant as an element-wise region takes them, and how they repeat.
//
// Threads:  any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/expr/graph.h"

namespace penstock::expr {

// The elements of a constant in the type in which they are computed: LaneOf().
std::vector<uint8_t> ToLanes(const Node& node);

// The number of elements after which an array repeats itself: a divisor of their count.
size_t Period(const std::vector<uint8_t>& bytes, size_t element_bytes);

// The greatest number of elements into whose runs of equal values an array falls; some number below
// `least` where it is below that.
size_t RunElements(const std::vector<uint8_t>& bytes, size_t element_bytes, size_t least);

}  // namespace penstock::expr
