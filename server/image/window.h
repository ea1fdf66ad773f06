// Crops and pads: the result is a window on an endless plane of zeros in which the image lies.
//
// Threads:  safe from any thread.
// Cost:     one copy of each row of pixels.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/expr/data_integers.h"
#include "server/expr/function.h"

namespace penstock::expr {

// In pixels of the image; `top` and `left` are negative where the window begins before it.
struct Window {
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;
};

// Where the window lies for an image of this size; `integers`: of the call. An error is one of the
// image: "smaller than".
using PlaceWindow = std::function<absl::StatusOr<Window>(int64_t height, int64_t width,
                                                         absl::Span<const int64_t> integers)>;

// The same of an image that is read in part: only what of the window the image covers.
absl::Status RunWindowOnPart(const Window& window, DType dtype, PartReader& reader,
                             const Shape& image, Arena& scratch, RowOutput& out);

// Writes the window of one image, whose result's shape has been set.
void RunWindow(const Window& window, DType dtype, const RowValue& image, RowOutput& out);

// The call of a function that copies a window. `height` and `width` are the result's, kUnknownSize
// where they depend on the image's or on the data: then `place` tells them where that is known.
// `integers`: that `place` is given.
absl::StatusOr<BoundRowFunction> BindWindow(const TensorType& image, int64_t height, int64_t width,
                                            PlaceWindow place, DataIntegers integers = {});

}  // namespace penstock::expr
