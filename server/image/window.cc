#include "server/image/window.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "server/expr/arguments.h"

namespace penstock::expr {
namespace {

// A tile of the result ought to stay in L1 until the arithmetic behind it has taken it.
constexpr int64_t kTileBytes = 4096;

class CopyWindow final : public RowKernel {
 public:
  CopyWindow(DType dtype, bool sets_shape, PlaceWindow place, DataIntegers integers)
      : dtype_(dtype),
        sets_shape_(sets_shape),
        place_(std::move(place)),
        integers_(std::move(integers)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const auto window = Place(arguments[0].shape, arguments.subspan(1), out);
    if (!window.ok()) return window.status();
    RunWindow(*window, dtype_, arguments[0], out);
    return absl::OkStatus();
  }

  bool takes_parts() const override { return true; }
  absl::Status RunOnPart(PartReader& reader, const Shape& image, absl::Span<const RowValue> others,
                         Arena& scratch, RowOutput& out) const override {
    const auto window = Place(image, others, out);
    if (!window.ok()) return window.status();
    return RunWindowOnPart(*window, dtype_, reader, image, scratch, out);
  }

 private:
  // `others`: the arguments behind the image.
  absl::StatusOr<Window> Place(const Shape& image, absl::Span<const RowValue> others,
                               RowOutput& out) const {
    IntegersRead integers;
    if (absl::Status status = integers_.Read(others, &integers); !status.ok()) return status;
    auto window = place_(image[0], image[1], integers);
    if (!window.ok()) return window;
    if (const absl::Status status = CheckElements(window->height, window->width, image[2]);
        !status.ok()) {
      return status;
    }
    if (sets_shape_) out.SetShape({window->height, window->width, image[2]});
    return window;
  }

  const DType dtype_;
  const bool sets_shape_;
  const PlaceWindow place_;
  const DataIntegers integers_;
};

}  // namespace

void RunWindow(const Window& window, DType dtype, const RowValue& image, RowOutput& out) {
  const int64_t height = image.shape[0], width = image.shape[1], channels = image.shape[2];
  const int64_t pixel_bytes = channels * static_cast<int64_t>(DTypeSize(dtype));
  const int64_t row_bytes = window.width * pixel_bytes;
  if (window.height == 0 || row_bytes == 0) return;
  // The part of each row that the image covers, in columns of the window.
  const int64_t begin = std::clamp<int64_t>(-window.left, 0, window.width);
  const int64_t end = std::clamp<int64_t>(width - window.left, begin, window.width);
  const int64_t tile_rows = std::max<int64_t>(kTileBytes / row_bytes, 1);
  for (int64_t y = 0; y < window.height;) {
    const int64_t count = std::min(tile_rows, window.height - y);
    uint8_t* to = out.Reserve(static_cast<size_t>(count * row_bytes));
    for (int64_t i = 0; i < count; ++i, ++y, to += row_bytes) {
      const int64_t source = y + window.top;
      if (source < 0 || source >= height || begin == end) {
        std::memset(to, 0, static_cast<size_t>(row_bytes));
        continue;
      }
      std::memset(to, 0, static_cast<size_t>(begin * pixel_bytes));
      std::memcpy(to + begin * pixel_bytes,
                  image.data + (source * width + window.left + begin) * pixel_bytes,
                  static_cast<size_t>((end - begin) * pixel_bytes));
      std::memset(to + end * pixel_bytes, 0,
                  static_cast<size_t>((window.width - end) * pixel_bytes));
    }
    out.Commit();
  }
}

absl::Status RunWindowOnPart(const Window& window, DType dtype, PartReader& reader,
                             const Shape& image, Arena& scratch, RowOutput& out) {
  const int64_t top = std::clamp<int64_t>(window.top, 0, image[0]);
  const int64_t left = std::clamp<int64_t>(window.left, 0, image[1]);
  const int64_t bottom = std::clamp<int64_t>(window.top + window.height, top, image[0]);
  const int64_t right = std::clamp<int64_t>(window.left + window.width, left, image[1]);
  RowValue part;
  part.shape = {bottom - top, right - left, image[2]};
  part.bytes = static_cast<size_t>(*NumElements(part.shape)) * DTypeSize(dtype);
  // The window's own memory, where all of it is covered.
  const bool covered = bottom - top == window.height && right - left == window.width;
  if (covered) {
    return reader.ReadTo(top, left, bottom - top, right - left, part.bytes, scratch, out);
  }
  uint8_t* const pixels = scratch.Allocate(part.bytes);
  const absl::Status status = reader.Read(top, left, bottom - top, right - left, pixels);
  if (!status.ok()) return status;
  part.data = pixels;
  RunWindow({window.top - top, window.left - left, window.height, window.width}, dtype, part, out);
  return status;
}

absl::StatusOr<BoundRowFunction> BindWindow(const TensorType& image, int64_t height, int64_t width,
                                            PlaceWindow place, DataIntegers integers) {
  const Shape& shape = image.shape;
  if (shape[0] != kUnknownSize && shape[1] != kUnknownSize && integers.all_constant()) {
    IntegersRead constants;
    if (absl::Status status = integers.Read({}, &constants); !status.ok()) return status;
    const auto window = place(shape[0], shape[1], constants);
    if (!window.ok()) return absl::InvalidArgumentError(window.status().message());
    height = window->height;
    width = window->width;
  }
  BoundRowFunction bound;
  bound.type = {image.dtype, {height, width, shape[2]}};
  const bool unknown = height == kUnknownSize || width == kUnknownSize || shape[2] == kUnknownSize;
  bound.tensor_arguments = {0};
  bound.tensor_arguments.insert(bound.tensor_arguments.end(), integers.positions().begin(),
                                integers.positions().end());
  bound.kernel =
      std::make_shared<CopyWindow>(image.dtype, unknown, std::move(place), std::move(integers));
  return bound;
}

}  // namespace penstock::expr
