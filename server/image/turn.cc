#include "server/image/turn.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "server/kernels/mirror.h"

namespace penstock::expr {
namespace {

constexpr int64_t kTileBytes = 4096;

// Copies `count` pixels that lie `step` bytes apart. The common sizes are constants for the
// compiler.
template <size_t kPixelBytes>
void CopyPixels(const uint8_t* from, int64_t step, int64_t count, size_t pixel_bytes, uint8_t* to) {
  const size_t bytes = kPixelBytes == 0 ? pixel_bytes : kPixelBytes;
  for (int64_t i = 0; i < count; ++i, from += step, to += bytes) std::memcpy(to, from, bytes);
}

using Copy = void (*)(const uint8_t*, int64_t, int64_t, size_t, uint8_t*);

Copy FindCopy(size_t pixel_bytes) {
  switch (pixel_bytes) {
    case 1:
      return CopyPixels<1>;
    case 3:
      return CopyPixels<3>;
    case 4:
      return CopyPixels<4>;
    case 12:
      return CopyPixels<12>;
    case 16:
      return CopyPixels<16>;
    default:
      return CopyPixels<0>;
  }
}

class TurnPixels final : public RowKernel {
 public:
  TurnPixels(DType dtype, bool sets_shape, const Turn& turn)
      : dtype_(dtype), sets_shape_(sets_shape), turn_(turn) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    Shape shape = arguments[0].shape;
    if (turn_.swap_axes) std::swap(shape[0], shape[1]);
    if (sets_shape_) out.SetShape(shape);
    RunTurn(turn_, dtype_, arguments[0], out);
    return absl::OkStatus();
  }

  bool takes_tiles() const override { return KeepsRows(turn_); }
  std::unique_ptr<TileFilter> NewTileFilter(const Shape& image, absl::Span<const RowValue>,
                                            Arena& scratch, RowOutput& out) const override {
    return NewTurnFilter(turn_, dtype_, image, scratch, out);
  }

 private:
  const DType dtype_;
  const bool sets_shape_;
  const Turn turn_;
};

}  // namespace

void RunTurn(const Turn& turn, DType dtype, const RowValue& image, RowOutput& out) {
  const int64_t rows = image.shape[0], columns = image.shape[1], channels = image.shape[2];
  const int64_t height = turn.swap_axes ? columns : rows;
  const int64_t width = turn.swap_axes ? rows : columns;
  const int64_t pixel_bytes = channels * static_cast<int64_t>(DTypeSize(dtype));
  const int64_t row_bytes = width * pixel_bytes;
  if (height == 0 || row_bytes == 0) return;
  int64_t row_step = columns * pixel_bytes, column_step = pixel_bytes;
  const uint8_t* first = image.data;
  if (turn.flip_rows) {
    first += (rows - 1) * row_step;
    row_step = -row_step;
  }
  if (turn.flip_columns) {
    first += (columns - 1) * column_step;
    column_step = -column_step;
  }
  if (turn.swap_axes) std::swap(row_step, column_step);
  const Copy copy = FindCopy(static_cast<size_t>(pixel_bytes));
  const int64_t tile_rows = std::max<int64_t>(kTileBytes / row_bytes, 1);
  for (int64_t y = 0; y < height;) {
    const int64_t count = std::min(tile_rows, height - y);
    uint8_t* to = out.Reserve(static_cast<size_t>(count * row_bytes));
    for (int64_t i = 0; i < count; ++i, ++y, to += row_bytes) {
      const uint8_t* const from = first + y * row_step;
      if (column_step == pixel_bytes) {
        std::memcpy(to, from, static_cast<size_t>(row_bytes));
      } else if (column_step == -pixel_bytes) {
        kernels::MirrorPixels(from - (row_bytes - pixel_bytes), static_cast<size_t>(width),
                              static_cast<size_t>(pixel_bytes), to);
      } else {
        copy(from, column_step, width, static_cast<size_t>(pixel_bytes), to);
      }
    }
    out.Commit();
  }
}

absl::StatusOr<BoundRowFunction> BindTurn(const TensorType& image, const Turn& turn) {
  Shape shape = image.shape;
  if (turn.swap_axes) std::swap(shape[0], shape[1]);
  const bool unknown = std::find(shape.begin(), shape.end(), kUnknownSize) != shape.end();
  BoundRowFunction bound;
  bound.type = {image.dtype, shape};
  bound.kernel = std::make_shared<TurnPixels>(image.dtype, unknown, turn);
  bound.tensor_arguments = {0};
  return bound;
}

}  // namespace penstock::expr
