#include "server/expr/half_values.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "server/kernels/half.h"

namespace penstock::expr {
namespace {

class Widen final : public RowKernel {
 public:
  Widen(bool is_bfloat, bool sets_shape) : is_bfloat_(is_bfloat), sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& in = arguments[0];
    if (sets_shape_) out.SetShape(in.shape);
    constexpr size_t kTileElements = 1024;
    const size_t elements = in.bytes / sizeof(uint16_t);
    for (size_t first = 0; first < elements; first += kTileElements) {
      const size_t count = std::min(kTileElements, elements - first);
      uint8_t* const tile = out.Reserve(count * sizeof(float));
      for (size_t i = 0; i < count; ++i) {
        uint16_t half;
        std::memcpy(&half, in.data + (first + i) * sizeof(half), sizeof(half));
        const float value = is_bfloat_ ? kernels::FromBfloat16(half) : kernels::FromFloat16(half);
        std::memcpy(tile + i * sizeof(value), &value, sizeof(value));
      }
      out.Commit();
    }
    return absl::OkStatus();
  }

 private:
  const bool is_bfloat_;
  const bool sets_shape_;
};

}  // namespace

bool IsHalf(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBfloat16; }

BoundRowFunction WidenHalves(const TensorType& type) {
  BoundRowFunction bound;
  bound.type = {DType::kFloat32, type.shape};
  bound.kernel =
      std::make_shared<Widen>(type.dtype == DType::kBfloat16, !NumElements(type.shape).has_value());
  bound.tensor_arguments = {0};
  return bound;
}

}  // namespace penstock::expr
