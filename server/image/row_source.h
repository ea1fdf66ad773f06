// Functions that make an image of another of the same shape and dtype, row after row, and can be
// put one behind the other.
//
// Threads:  safe from any thread; a NextRows belongs to one.
// Cost:     rows go out in tiles of about 4 KiB.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "server/expr/function.h"

namespace penstock::expr {

// Pixels in C order, (height, width, channels).
struct ImageView {
  const uint8_t* pixels = nullptr;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t element_bytes = 1;

  int64_t row_bytes() const { return width * channels * element_bytes; }
  const uint8_t* row(int64_t y) const { return pixels + y * row_bytes(); }
};

ImageView ViewOf(DType dtype, const RowValue& image);

// Writes the next `num_rows` rows of the result, the first time its first; so many bytes behind
// them may be overwritten.
inline constexpr size_t kRowsPadding = 64;
using NextRows = std::function<void(int64_t num_rows, uint8_t* out)>;

// Begins the result of one image of at least one value, which outlives it, as does what it
// allocates from `scratch`. An error is the row's.
using StartRows = std::function<absl::StatusOr<NextRows>(const ImageView& image, Arena& scratch)>;

// The image's own rows.
NextRows StartCopy(const ImageView& image);

// Writes all rows of an image whose shape has been set.
void WriteRows(const ImageView& image, const NextRows& next, RowOutput& out);

// The call of a function whose result has the image's type.
BoundRowFunction BindRows(const TensorType& image, StartRows start);

}  // namespace penstock::expr
