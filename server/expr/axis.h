// One axis of a row, seen as (outer, size, inner): element (o, i, n) is at (o * size + i) * inner +
// n.
//
// Threads:  safe from any thread.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "server/expr/function.h"

namespace penstock::expr {

struct AxisView {
  int64_t outer = 1;
  int64_t size = 1;
  int64_t inner = 1;

  // REQUIRES: `axis` is below the number of axes, all sizes are known.
  AxisView(const Shape& shape, size_t axis) : size(shape[axis]) {
    for (size_t i = 0; i < axis; ++i) outer *= shape[i];
    for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  }
};

// The axis that an argument names, counted from the last: -1 is the last one. Only so does it mean
// the same before and behind a batch.
absl::StatusOr<size_t> ReadAxis(const Argument& argument, const TensorType& type);
// The same of an argument `x` that holds numbers.
absl::StatusOr<size_t> ReadAxisOfNumbers(const TensorType& x, const Argument& argument);

}  // namespace penstock::expr
