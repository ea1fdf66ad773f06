// The shape of one row of a column, whose unknown axes the column's `dims` tell.
//
// Threads: any.
// Cost:    one copy of the sizes.
#pragma once

#include <cstddef>

#include "base/column.h"
#include "base/signature.h"

namespace penstock {

// Whether only the data tells the size of some axis.
bool HasUnknownAxes(const Shape& shape);

// Whether `shape` is one that `type` allows: as many axes, and each known one of the size that it
// says.
bool FitsShape(const Shape& type, const Shape& shape);

// The full shape of row `row` of a column of `type`. REQUIRES: column.dims where `type` has unknown
// axes.
Shape RowDims(const TensorType& type, const Column& column, size_t row);

}  // namespace penstock
