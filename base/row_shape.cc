#include "base/row_shape.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace penstock {

bool HasUnknownAxes(const Shape& shape) {
  return std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 0; });
}

bool FitsShape(const Shape& type, const Shape& shape) {
  return std::equal(type.begin(), type.end(), shape.begin(), shape.end(),
                    [](int64_t wanted, int64_t size) { return wanted < 0 || wanted == size; });
}

Shape RowDims(const TensorType& type, const Column& column, size_t row) {
  if (column.dims == nullptr) {
    if (HasUnknownAxes(type.shape)) {
      std::fprintf(stderr, "a column of %s does not tell the sizes of its rows\n",
                   TypeToString(type).c_str());
      std::abort();
    }
    return type.shape;
  }
  const int64_t* dims = column.dims + row * type.shape.size();
  return Shape(dims, dims + type.shape.size());
}

}  // namespace penstock
