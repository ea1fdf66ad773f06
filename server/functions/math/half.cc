// Casts to the floating types of 16 bits, which nothing is computed in.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/expr/function.h"
#include "server/expr/row_kernel.h"
#include "server/kernels/half.h"

namespace penstock::expr {
namespace {

constexpr size_t kTileElements = 2048;

uint16_t ToHalf(DType to, float value) {
  return to == DType::kFloat16 ? kernels::ToFloat16(value) : kernels::ToBfloat16(value);
}
uint16_t ToHalf(DType to, double value) {
  return to == DType::kFloat16 ? kernels::ToFloat16(value)
                               : kernels::ToBfloat16(static_cast<float>(value));
}

template <typename From>
class HalfCast final : public RowKernel {
 public:
  HalfCast(DType to, bool sets_shape) : to_(to), sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& in = arguments[0];
    if (sets_shape_) out.SetShape(in.shape);
    const size_t elements = in.bytes / sizeof(From);
    for (size_t first = 0; first < elements; first += kTileElements) {
      const size_t count = std::min(kTileElements, elements - first);
      uint8_t* tile = out.Reserve(count * sizeof(uint16_t));
      for (size_t i = 0; i < count; ++i) {
        From value;
        std::memcpy(&value, in.data + (first + i) * sizeof(From), sizeof(From));
        using Wide = std::conditional_t<std::is_same_v<From, double>, double, float>;
        const uint16_t half = ToHalf(to_, static_cast<Wide>(value));
        std::memcpy(tile + i * sizeof(half), &half, sizeof(half));
      }
      out.Commit();
    }
    return absl::OkStatus();
  }

 private:
  const DType to_;
  const bool sets_shape_;
};

std::shared_ptr<const RowKernel> MakeKernel(DType from, DType to, bool sets_shape) {
  switch (from) {
    case DType::kBool:
    case DType::kUint8:
      return std::make_shared<HalfCast<uint8_t>>(to, sets_shape);
    case DType::kInt8:
      return std::make_shared<HalfCast<int8_t>>(to, sets_shape);
    case DType::kInt16:
      return std::make_shared<HalfCast<int16_t>>(to, sets_shape);
    case DType::kUint16:
      return std::make_shared<HalfCast<uint16_t>>(to, sets_shape);
    case DType::kInt32:
      return std::make_shared<HalfCast<int32_t>>(to, sets_shape);
    case DType::kUint32:
      return std::make_shared<HalfCast<uint32_t>>(to, sets_shape);
    case DType::kInt64:
      return std::make_shared<HalfCast<int64_t>>(to, sets_shape);
    case DType::kUint64:
      return std::make_shared<HalfCast<uint64_t>>(to, sets_shape);
    case DType::kFloat32:
      return std::make_shared<HalfCast<float>>(to, sets_shape);
    case DType::kFloat64:
      return std::make_shared<HalfCast<double>>(to, sets_shape);
    default:
      return nullptr;
  }
}

template <DType to>
absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& from = arguments[0].type;
  BoundRowFunction bound;
  bound.type = {to, from.shape};
  bound.kernel = MakeKernel(from.dtype, to, !NumElements(from.shape).has_value());
  if (bound.kernel == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected numbers of another type, found ", TypeToString(from)));
  }
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kFloat16({
    .name = "float16",
    .signature = "float16(x)",
    .doc = "x as float16, rounded to nearest. For outputs: nothing is computed in it.",
    .bind = Bind<DType::kFloat16>,
});

const RowFunctionRegistration kBfloat16({
    .name = "bfloat16",
    .signature = "bfloat16(x)",
    .doc = "x as bfloat16, rounded to nearest. For outputs: nothing is computed in it.",
    .bind = Bind<DType::kBfloat16>,
});

}  // namespace
}  // namespace penstock::expr
