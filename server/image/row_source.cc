#include "server/image/row_source.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace penstock::expr {
namespace {

class RowsKernel final : public RowKernel {
 public:
  RowsKernel(DType dtype, bool sets_shape, StartRows start)
      : dtype_(dtype), sets_shape_(sets_shape), start_(std::move(start)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const ImageView image = ViewOf(dtype_, arguments[0]);
    if (sets_shape_) out.SetShape(arguments[0].shape);
    if (image.row_bytes() == 0 || image.height == 0) return absl::OkStatus();
    const auto next = start_(image, scratch);
    if (next.ok()) WriteRows(image, *next, out);
    return next.status();
  }

 private:
  const DType dtype_;
  const bool sets_shape_;
  const StartRows start_;
};

}  // namespace

ImageView ViewOf(DType dtype, const RowValue& image) {
  return {image.data, image.shape[0], image.shape[1], image.shape[2],
          static_cast<int64_t>(DTypeSize(dtype))};
}

NextRows StartCopy(const ImageView& image) {
  return [image, from = image.pixels](int64_t num_rows, uint8_t* out) mutable {
    const int64_t bytes = num_rows * image.row_bytes();
    std::memcpy(out, from, static_cast<size_t>(bytes));
    from += bytes;
  };
}

void WriteRows(const ImageView& image, const NextRows& next, RowOutput& out) {
  constexpr int64_t kTileBytes = 4096;
  const int64_t row_bytes = image.row_bytes();
  if (row_bytes == 0) return;
  const int64_t tile_rows = std::max<int64_t>(kTileBytes / row_bytes, 1);
  for (int64_t y = 0; y < image.height;) {
    const int64_t count = std::min(tile_rows, image.height - y);
    next(count, out.Reserve(static_cast<size_t>(count * row_bytes)));
    out.Commit();
    y += count;
  }
}

BoundRowFunction BindRows(const TensorType& image, StartRows start) {
  BoundRowFunction bound;
  bound.type = image;
  bound.kernel = std::make_shared<RowsKernel>(image.dtype, !NumElements(image.shape).has_value(),
                                              std::move(start));
  bound.tensor_arguments = {0};
  return bound;
}

}  // namespace penstock::expr
