#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "server/expr/arguments.h"

namespace penstock::expr {
namespace {

class PackBits final : public RowKernel {
 public:
  explicit PackBits(bool sets_shape) : sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& in = arguments[0];
    const auto bits = static_cast<size_t>(in.shape.back());
    const size_t bytes = (bits + 7) / 8;
    if (sets_shape_) {
      Shape shape = in.shape;
      shape.back() = static_cast<int64_t>(bytes);
      out.SetShape(shape);
    }
    if (in.bytes == 0) return absl::OkStatus();
    const size_t rows = in.bytes / bits;
    uint8_t* const to = out.Reserve(rows * bytes);
    const uint8_t* from = in.data;
    StopLook look;
    for (size_t row = 0; row < rows; ++row) {
      for (size_t i = 0; i < bytes; ++i) {
        look.Did(8);
        const size_t count = std::min<size_t>(8, bits - i * 8);
        uint32_t byte = 0;
        for (size_t bit = 0; bit < count; ++bit) byte |= uint32_t{*from++ != 0} << (7 - bit);
        to[row * bytes + i] = static_cast<uint8_t>(byte);
      }
    }
    out.Commit();
    return absl::OkStatus();
  }

 private:
  const bool sets_shape_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  TensorType type = arguments[0].type;
  const auto elements = NumElements(type.shape);
  if ((type.dtype != DType::kUint8 && type.dtype != DType::kBool) || type.shape.empty() ||
      elements == 0) {
    return WrongArgument(
        "x", absl::StrCat("uint8 or bool with one axis at least, found ", TypeToString(type)));
  }
  BoundRowFunction bound;
  bound.kernel = std::make_shared<PackBits>(!elements.has_value());
  type.dtype = DType::kUint8;
  if (type.shape.back() != kUnknownSize) type.shape.back() = (type.shape.back() + 7) / 8;
  bound.type = type;
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "pack_bits",
    .signature = "pack_bits(x)",
    .doc = "Whether each value is something else than zero as one bit, the most significant bit of "
           "each byte first (numpy.packbits along the last axis): (…, n) becomes (…, (n + 7) // 8) "
           "of uint8.\n"
           "\n"
           "x: uint8 or bool. Bits after the last value are 0.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
