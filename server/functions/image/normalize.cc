#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"
#include "server/image/pixels.h"

namespace penstock::expr {
namespace {

// Values of one tensor as float32, rounded once.
void ReadFloats(DType dtype, const RowValue& from, size_t count, float* out) {
  for (size_t i = 0; i < count; ++i) {
    if (dtype == DType::kFloat32) {
      std::memcpy(out + i, from.data + i * sizeof(float), sizeof(float));
    } else if (dtype == DType::kFloat64) {
      double value;
      std::memcpy(&value, from.data + i * sizeof(value), sizeof(value));
      out[i] = static_cast<float>(value);
    } else {
      int64_t value;
      std::memcpy(&value, from.data + i * sizeof(value), sizeof(value));
      out[i] = static_cast<float>(value);
    }
  }
}

class Normalize final : public RowKernel {
 public:
  Normalize(DType image, DType mean, DType deviation, bool sets_shape, bool planes)
      : image_(image),
        mean_(mean),
        deviation_(deviation),
        sets_shape_(sets_shape),
        planes_(planes) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& image = arguments[0];
    const int64_t height = image.shape[0], width = image.shape[1], channels = image.shape[2];
    if (sets_shape_) {
      out.SetShape(planes_ ? Shape{channels, height, width} : Shape{height, width, channels});
    }
    const int64_t num_pixels = height * width;
    if (num_pixels * channels == 0) return absl::OkStatus();
    const auto num_channels = static_cast<size_t>(channels);
    auto* const means = scratch.AllocateArray<float>(num_channels);
    auto* const deviations = scratch.AllocateArray<float>(num_channels);
    for (const auto& [from, dtype, to] : {std::tuple(&arguments[1], mean_, means),
                                          std::tuple(&arguments[2], deviation_, deviations)}) {
      const size_t given = from->shape.empty() ? 1 : static_cast<size_t>(from->shape[0]);
      if (given != 1 && given != num_channels) {
        return absl::DataLossError(absl::StrCat(
            "image of another number of channels than mean and std: ", channels, " and ", given));
      }
      ReadFloats(dtype, *from, given, to);
      if (given == 1) std::fill_n(to, num_channels, to[0]);
    }
    if (image_ == DType::kUint8) {
      Write(image.data, num_pixels, channels, means, deviations, out);
    } else {
      Write(reinterpret_cast<const float*>(image.data), num_pixels, channels, means, deviations,
            out);
    }
    return absl::OkStatus();
  }

 private:
  template <typename T>
  void Write(const T* in, int64_t num_pixels, int64_t channels, const float* means,
             const float* deviations, RowOutput& out) const {
    constexpr int64_t kTileValues = 1024;
    if (planes_) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t start = 0; start < num_pixels; start += kTileValues) {
          const int64_t count = std::min(kTileValues, num_pixels - start);
          auto* const to =
              reinterpret_cast<float*>(out.Reserve(static_cast<size_t>(count) * sizeof(float)));
          const T* const from = in + start * channels + c;
          for (int64_t i = 0; i < count; ++i) {
            to[i] = (static_cast<float>(from[i * channels]) - means[c]) / deviations[c];
          }
          out.Commit();
        }
      }
      return;
    }
    const int64_t tile_pixels = std::max<int64_t>(kTileValues / channels, 1);
    for (int64_t start = 0; start < num_pixels; start += tile_pixels) {
      const int64_t count = std::min(tile_pixels, num_pixels - start);
      auto* to = reinterpret_cast<float*>(
          out.Reserve(static_cast<size_t>(count * channels) * sizeof(float)));
      const T* from = in + start * channels;
      for (int64_t i = 0; i < count; ++i, from += channels, to += channels) {
        for (int64_t c = 0; c < channels; ++c) {
          to[c] = (static_cast<float>(from[c]) - means[c]) / deviations[c];
        }
      }
      out.Commit();
    }
  }

  const DType image_;
  const DType mean_;
  const DType deviation_;
  const bool sets_shape_;
  const bool planes_;
};

absl::Status CheckVector(const Argument& argument, const char* name, int64_t channels) {
  const TensorType& type = argument.type;
  const bool fits = (type.dtype == DType::kFloat32 || type.dtype == DType::kFloat64 ||
                     type.dtype == DType::kInt64) &&
                    (type.shape.empty() ||
                     (type.shape.size() == 1 && (type.shape[0] == 1 || type.shape[0] == channels ||
                                                 (channels == kUnknownSize && type.shape[0] > 0))));
  if (fits) return absl::OkStatus();
  return WrongArgument(
      name, absl::StrCat("a number, or one for each channel, found ", TypeToString(type)));
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  std::string layout = "HWC";
  if (const absl::Status status =
          FirstError({CheckImage(arguments[0], {DType::kUint8, DType::kFloat32}),
                      ReadConstant(arguments[3], "layout", &layout)});
      !status.ok()) {
    return status;
  }
  const TensorType& image = arguments[0].type;
  if (const absl::Status status = FirstError({CheckVector(arguments[1], "mean", image.shape[2]),
                                              CheckVector(arguments[2], "std", image.shape[2])});
      !status.ok()) {
    return status;
  }
  if (layout != "HWC" && layout != "CHW") return WrongArgument("layout", "\"HWC\" or \"CHW\"");
  const bool planes = layout == "CHW";
  const Shape& shape = image.shape;
  BoundRowFunction bound;
  bound.type = {DType::kFloat32, planes ? Shape{shape[2], shape[0], shape[1]} : shape};
  bound.kernel =
      std::make_shared<Normalize>(image.dtype, arguments[1].type.dtype, arguments[2].type.dtype,
                                  !NumElements(shape).has_value(), planes);
  bound.tensor_arguments = {0, 1, 2};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "normalize",
    .signature = "normalize(image, mean, std, layout=\"HWC\")",
    .doc = "(float32(image) - mean) / std, channel by channel.\n"
           "\n"
           "image: uint8 or float32 of shape (height, width, channels). Values keep their range: "
           "means of uint8 images are those of 0 to 255.\n"
           "mean, std: a number, or one for each channel; rounded to float32.\n"
           "layout: \"HWC\", or \"CHW\" for a result of shape (channels, height, width).\n"
           "\n"
           "The result is float32, and has the bits of the same expression in NumPy and "
           "TensorFlow. Another number of channels is an error\n"
           "of its record, or of the spec where it is known.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
