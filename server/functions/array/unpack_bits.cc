#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"
#include "server/expr/function.h"

namespace penstock::expr {
namespace {

// For uses that are not fused with what follows (server/expr/bit_pattern.h).
class UnpackBits : public RowKernel {
 public:
  explicit UnpackBits(bool sets_shape) : sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    constexpr size_t kTileBytes = 512;  // of input
    const RowValue& in = arguments[0];
    if (sets_shape_) {
      Shape shape = in.shape;
      shape.back() *= 8;
      if (const auto elements = CountElements(shape); !elements.ok()) return elements.status();
      out.SetShape(shape);
    }
    for (size_t first = 0; first < in.bytes; first += kTileBytes) {
      const size_t count = std::min(kTileBytes, in.bytes - first);
      uint8_t* bits = out.Reserve(8 * count);
      for (size_t i = 0; i < count; ++i) {
        for (int bit = 0; bit < 8; ++bit) bits[8 * i + bit] = in.data[first + i] >> (7 - bit) & 1;
      }
      out.Commit();
    }
    return absl::OkStatus();
  }

 private:
  const bool sets_shape_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& type = arguments[0].type;
  const auto elements = NumElements(type.shape);
  if (type.dtype != DType::kUint8 || type.shape.empty() || elements.value_or(0) > (1 << 24)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected uint8 of one axis at least (at most 2^24 bytes), found ", TypeToString(type)));
  }
  BoundRowFunction bound;
  bound.type = {DType::kUint8, type.shape};
  if (bound.type.shape.back() != kUnknownSize) bound.type.shape.back() *= 8;
  bound.kernel = std::make_shared<UnpackBits>(!elements.has_value());
  bound.tensor_arguments = {0};
  bound.unpacks_bits = elements.has_value();
  return bound;
}

const RowFunctionRegistration kRegistration({
    "unpack_bits",
    "unpack_bits(x)",
    "The bits of uint8 values as uint8 of 0 and 1, the most significant bit of each byte first "
    "(numpy.unpackbits along the last axis): (…, n) becomes (…, 8 n).",
    Bind,
});

}  // namespace
}  // namespace penstock::expr
