#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"

namespace penstock::expr {
namespace {

// The greatest value of `From` that `To` can hold, both floating or the second an integer.
template <typename From, typename To>
From Highest() {
  const auto high = static_cast<From>(std::numeric_limits<To>::max());
  // Rounded up where `From` has fewer bits: one step below is what fits.
  if (static_cast<double>(high) > static_cast<double>(std::numeric_limits<To>::max())) {
    return std::nextafter(high, From(0));
  }
  return high;
}

template <typename From, typename To>
To ConvertPixel(From value, bool saturate) {
  if constexpr (std::is_floating_point_v<From> && std::is_floating_point_v<To>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_floating_point_v<To>) {
    constexpr auto kScale =
        static_cast<To>(1.0 / static_cast<double>(std::numeric_limits<From>::max()));
    return static_cast<To>(value) * kScale;
  } else if constexpr (std::is_floating_point_v<From>) {
    constexpr auto kScale =
        static_cast<From>(static_cast<double>(std::numeric_limits<To>::max()) + 0.5);
    constexpr auto kLow = static_cast<From>(std::numeric_limits<To>::min());
    // Without a return, and in the form of the processor's least and greatest, so that the loop
    // becomes a short one of vectors.
    From scaled = value * kScale;
    if constexpr (kLow < 0) scaled = scaled == scaled ? scaled : 0;
    scaled = scaled > kLow ? scaled : kLow;  // 0 of NaN, too
    scaled = scaled < Highest<From, To>() ? scaled : Highest<From, To>();
    using Whole = std::conditional_t<sizeof(To) < sizeof(int32_t), int32_t, To>;
    return static_cast<To>(static_cast<Whole>(scaled));
  } else {
    constexpr auto kIn = static_cast<int64_t>(std::numeric_limits<From>::max());
    constexpr auto kOut = static_cast<int64_t>(std::numeric_limits<To>::max());
    auto wide = static_cast<int64_t>(value);
    // Both scales are powers of two, so a shift divides with the quotient rounded down.
    if constexpr (kIn > kOut) wide >>= std::__lg((kIn + 1) / (kOut + 1));
    if (saturate) {
      wide = std::clamp(wide, static_cast<int64_t>(std::numeric_limits<To>::min()), kOut);
    }
    const auto narrow = static_cast<std::make_unsigned_t<To>>(wide);
    if constexpr (kIn > kOut) return static_cast<To>(narrow);
    return static_cast<To>(narrow * static_cast<uint64_t>((kOut + 1) / (kIn + 1)));
  }
}

template <typename From, typename To>
void Convert(const uint8_t* in, size_t count, bool saturate, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, in + i * sizeof(From), sizeof(From));
    const To pixel = ConvertPixel<From, To>(value, saturate);
    std::memcpy(out + i * sizeof(To), &pixel, sizeof(To));
  }
}

using ConvertFunction = void (*)(const uint8_t*, size_t, bool, uint8_t*);

template <typename From>
ConvertFunction FindTo(DType to) {
  switch (to) {
    case DType::kUint8:
      return Convert<From, uint8_t>;
    case DType::kInt8:
      return Convert<From, int8_t>;
    case DType::kUint16:
      return Convert<From, uint16_t>;
    case DType::kInt16:
      return Convert<From, int16_t>;
    case DType::kUint32:
      return Convert<From, uint32_t>;
    case DType::kInt32:
      return Convert<From, int32_t>;
    case DType::kFloat32:
      return Convert<From, float>;
    case DType::kFloat64:
      return Convert<From, double>;
    default:
      return nullptr;
  }
}

ConvertFunction FindConvert(DType from, DType to) {
  switch (from) {
    case DType::kUint8:
      return FindTo<uint8_t>(to);
    case DType::kInt8:
      return FindTo<int8_t>(to);
    case DType::kUint16:
      return FindTo<uint16_t>(to);
    case DType::kInt16:
      return FindTo<int16_t>(to);
    case DType::kUint32:
      return FindTo<uint32_t>(to);
    case DType::kInt32:
      return FindTo<int32_t>(to);
    case DType::kFloat32:
      return FindTo<float>(to);
    case DType::kFloat64:
      return FindTo<double>(to);
    default:
      return nullptr;
  }
}

class ConvertImage final : public RowKernel {
 public:
  ConvertImage(DType from, DType to, bool saturate, bool sets_shape)
      : convert_(from == to ? nullptr : FindConvert(from, to)),
        saturate_(saturate),
        sets_shape_(sets_shape),
        bytes_from_(DTypeSize(from)),
        bytes_to_(DTypeSize(to)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& image = arguments[0];
    if (sets_shape_) out.SetShape(image.shape);
    const size_t count = image.bytes / bytes_from_;
    constexpr size_t kTileValues = 1024;
    for (size_t start = 0; start < count; start += kTileValues) {
      const size_t tile = std::min(kTileValues, count - start);
      uint8_t* const to = out.Reserve(tile * bytes_to_);
      const uint8_t* const from = image.data + start * bytes_from_;
      if (convert_ == nullptr) {
        std::memcpy(to, from, tile * bytes_to_);
      } else {
        convert_(from, tile, saturate_, to);
      }
      out.Commit();
    }
    return absl::OkStatus();
  }

 private:
  const ConvertFunction convert_;  // null: the same dtype
  const bool saturate_;
  const bool sets_shape_;
  const size_t bytes_from_;
  const size_t bytes_to_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& image = arguments[0].type;
  constexpr char kDtypes[] =
      "uint8, int8, uint16, int16, uint32, int32, float32 or float64, found ";
  if (FindConvert(image.dtype, DType::kUint8) == nullptr) {
    return WrongArgument("image", absl::StrCat(kDtypes, TypeToString(image)));
  }
  std::string name;
  bool saturate = false;
  if (const absl::Status status = FirstError({ReadConstant(arguments[1], "dtype", &name),
                                              ReadConstant(arguments[2], "saturate", &saturate)});
      !status.ok()) {
    return status;
  }
  const auto dtype = DTypeFromName(name);
  if (!dtype || FindConvert(image.dtype, *dtype) == nullptr) {
    return WrongArgument("dtype", absl::StrCat(kDtypes, "\"", name, "\""));
  }
  BoundRowFunction bound;
  bound.type = {*dtype, image.shape};
  bound.kernel = std::make_shared<ConvertImage>(image.dtype, *dtype, saturate,
                                                !NumElements(image.shape).has_value());
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "convert_image_dtype",
    .signature = "convert_image_dtype(image, dtype, saturate=False)",
    .doc =
        "An image in another dtype and scaled to its range, as tf.image.convert_image_dtype "
        "does.\n"
        "\n"
        "image: uint8, int8, uint16, int16, uint32, int32, float32 or float64 of any shape.\n"
        "dtype: the name of one of them, a text.\n"
        "saturate: whether an integer that a narrower or unsigned dtype cannot hold is clipped; "
        "else it wraps.\n"
        "\n"
        "Integers become floats by the product with 1 / greatest in the result's dtype (float32: "
        "uint8 * float32(1 / 255)); floats become\n"
        "integers by the product with greatest + 0.5, and the fraction is dropped. They are always "
        "clipped, where TensorFlow leaves what\n"
        "is out of range undefined without saturate. TensorFlow's bytes elsewhere.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
