#include "server/image/pixels.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"

namespace penstock::expr {
namespace {

constexpr int64_t kTileValues = 1024;

template <typename T>
void ToFloat(const uint8_t* bytes, size_t count, float* out) {
  constexpr auto kScale = static_cast<float>(1.0 / std::numeric_limits<T>::max());
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    out[i] = static_cast<float>(value) * kScale;
  }
}

template <typename T>
void FromFloat(const float* in, size_t count, uint8_t* bytes) {
  constexpr float kScale = static_cast<float>(std::numeric_limits<T>::max()) + 0.5f;
  constexpr float kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  for (size_t i = 0; i < count; ++i) {
    float value = in[i] * kScale;
    value = value == value ? value : 0;
    value = value < kLow ? kLow : value > kHigh ? kHigh : value;
    const auto pixel = static_cast<T>(static_cast<int32_t>(value));
    std::memcpy(bytes + i * sizeof(T), &pixel, sizeof(T));
  }
}

// Changes each tile where it lies.
class ValueFilter final : public TileFilter {
 public:
  ValueFilter(PixelMap map, DType dtype, Arena& scratch, RowOutput& out)
      : map_(std::move(map)), dtype_(dtype), out_(out) {
    if (dtype != DType::kFloat32) values_ = scratch.AllocateArray<float>(kTileValues);
  }

  uint8_t* Reserve(size_t bytes) override {
    count_ = static_cast<int64_t>(bytes / DTypeSize(dtype_));
    tile_ = out_.Reserve(bytes);
    return tile_;
  }

  void Commit() override {
    if (dtype_ == DType::kFloat32) {
      auto* const values = reinterpret_cast<float*>(tile_);
      map_.apply(values, count_, 1, values);
    } else {
      for (int64_t start = 0; start < count_; start += kTileValues) {
        const int64_t count = std::min(kTileValues, count_ - start);
        uint8_t* const part = tile_ + static_cast<size_t>(start) * DTypeSize(dtype_);
        PixelsToFloat(dtype_, part, static_cast<size_t>(count), values_);
        map_.apply(values_, count, 1, values_);
        FloatToPixels(dtype_, values_, static_cast<size_t>(count), part);
      }
    }
    out_.Commit();
  }

 private:
  const PixelMap map_;
  const DType dtype_;
  RowOutput& out_;
  float* values_ = nullptr;
  uint8_t* tile_ = nullptr;
  int64_t count_ = 0;
};

class MapPixels final : public RowKernel {
 public:
  MapPixels(DType dtype, bool sets_shape, PixelMap map)
      : dtype_(dtype), sets_shape_(sets_shape), map_(std::move(map)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& image = arguments[0];
    if (const absl::Status status = CheckChannels(image, map_.channels_in); !status.ok()) {
      return status;
    }
    Shape shape = image.shape;
    if (map_.channels_out != 0) shape[2] = map_.channels_out;
    if (sets_shape_) out.SetShape(shape);
    RunPixels(map_, dtype_, image, scratch, out);
    return absl::OkStatus();
  }

  bool takes_tiles() const override { return map_.by_value; }
  std::unique_ptr<TileFilter> NewTileFilter(const Shape&, absl::Span<const RowValue>,
                                            Arena& scratch, RowOutput& out) const override {
    return NewValueFilter(map_, dtype_, scratch, out);
  }

 private:
  const DType dtype_;
  const bool sets_shape_;
  const PixelMap map_;
};

}  // namespace

absl::Status CheckPixels(const Argument& image, int64_t channels) {
  if (const absl::Status status = CheckImage(
          image, {DType::kUint8, DType::kInt8, DType::kUint16, DType::kInt16, DType::kFloat32});
      !status.ok()) {
    return status;
  }
  const int64_t given = image.type.shape[2];
  if (channels != 0 && given != kUnknownSize && given != channels) {
    return WrongArgument("image",
                         absl::StrCat(channels, " channels, found ", TypeToString(image.type)));
  }
  return absl::OkStatus();
}

absl::Status CheckChannels(const RowValue& image, int64_t channels) {
  if (channels == 0 || image.shape[2] == channels) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("image of another number of channels than ", channels, ": ", image.shape[2]));
}

void PixelsToFloat(DType dtype, const uint8_t* in, size_t count, float* out) {
  switch (dtype) {
    case DType::kUint8:
      return ToFloat<uint8_t>(in, count, out);
    case DType::kInt8:
      return ToFloat<int8_t>(in, count, out);
    case DType::kUint16:
      return ToFloat<uint16_t>(in, count, out);
    case DType::kInt16:
      return ToFloat<int16_t>(in, count, out);
    default:
      std::memcpy(out, in, count * sizeof(float));
  }
}

void FloatToPixels(DType dtype, const float* in, size_t count, uint8_t* out) {
  switch (dtype) {
    case DType::kUint8:
      return FromFloat<uint8_t>(in, count, out);
    case DType::kInt8:
      return FromFloat<int8_t>(in, count, out);
    case DType::kUint16:
      return FromFloat<uint16_t>(in, count, out);
    case DType::kInt16:
      return FromFloat<int16_t>(in, count, out);
    default:
      std::memcpy(out, in, count * sizeof(float));
  }
}

void RunPixels(const PixelMap& map, DType dtype, const RowValue& image, Arena& scratch,
               RowOutput& out) {
  const int64_t channels = image.shape[2];
  if (channels == 0) return;
  const int64_t channels_out = map.channels_out != 0 ? map.channels_out : channels;
  const int64_t num_pixels = image.shape[0] * image.shape[1];
  const int64_t tile_pixels = std::max<int64_t>(kTileValues / std::max(channels, channels_out), 1);
  const size_t element_bytes = DTypeSize(dtype);
  auto* const values = scratch.AllocateArray<float>(
      static_cast<size_t>(tile_pixels * std::max(channels, channels_out)));
  for (int64_t start = 0; start < num_pixels; start += tile_pixels) {
    const int64_t count = std::min(tile_pixels, num_pixels - start);
    const auto values_out = static_cast<size_t>(count * channels_out);
    if (dtype == DType::kFloat32) {
      auto* const to = reinterpret_cast<float*>(out.Reserve(values_out * element_bytes));
      map.apply(reinterpret_cast<const float*>(image.data) + start * channels, count, channels, to);
      out.Commit();
      continue;
    }
    PixelsToFloat(dtype, image.data + static_cast<size_t>(start * channels) * element_bytes,
                  static_cast<size_t>(count * channels), values);
    map.apply(values, count, channels, values);
    uint8_t* const to = out.Reserve(values_out * element_bytes);
    FloatToPixels(dtype, values, values_out, to);
    out.Commit();
  }
}

std::unique_ptr<TileFilter> NewValueFilter(PixelMap map, DType dtype, Arena& scratch,
                                           RowOutput& out) {
  return std::make_unique<ValueFilter>(std::move(map), dtype, scratch, out);
}

BoundRowFunction BindPixels(const TensorType& image, PixelMap map) {
  Shape shape = image.shape;
  if (map.channels_out != 0) shape[2] = map.channels_out;
  const bool unknown = std::find(shape.begin(), shape.end(), kUnknownSize) != shape.end();
  BoundRowFunction bound;
  bound.type = {image.dtype, shape};
  bound.kernel = std::make_shared<MapPixels>(image.dtype, unknown, std::move(map));
  bound.tensor_arguments = {0};
  return bound;
}

}  // namespace penstock::expr
