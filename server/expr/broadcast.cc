#include "server/expr/broadcast.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "base/in_pieces.h"

namespace penstock::expr {

std::optional<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    const bool open = x == kUnknownSize || y == kUnknownSize;
    if (x != y && x != 1 && y != 1 && !open) return std::nullopt;
    // Of two that match so, an open one is the lesser number.
    result[result.size() - 1 - i] = x == 1 ? y : y == 1 ? x : std::max(x, y);
  }
  return result;
}

void BroadcastPlaces(const Shape& from, const Shape& to, int64_t* places) {
  const int64_t elements = *NumElements(to);
  // Elements from one index to the next along each axis of the result; 0 along repeated ones.
  absl::InlinedVector<int64_t, 6> strides(to.size(), 0), index(to.size(), 0);
  int64_t stride = 1;
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t size = from[from.size() - 1 - i];
    if (size != 1) strides[to.size() - 1 - i] = stride;
    stride *= size;
  }
  int64_t place = 0;
  InPieces(static_cast<size_t>(elements), [&](size_t first, size_t some) {
    for (size_t i = first; i < first + some; ++i) {
      places[i] = place;
      for (size_t axis = to.size(); axis-- > 0;) {
        place += strides[axis];
        if (++index[axis] < to[axis]) break;
        place -= strides[axis] * to[axis];
        index[axis] = 0;
      }
    }
  });
}

}  // namespace penstock::expr
