#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"

namespace penstock::expr {
namespace {

class PackBits final : public RowKernel {
 public:
  explicit PackBits(int64_t bits) : bits_(bits) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& in = arguments[0];
    const auto bytes = static_cast<size_t>((bits_ + 7) / 8);
    const size_t rows = in.bytes / static_cast<size_t>(bits_);
    uint8_t* const to = out.Reserve(rows * bytes);
    const uint8_t* from = in.data;
    for (size_t row = 0; row < rows; ++row) {
      for (size_t i = 0; i < bytes; ++i) {
        const int64_t count = std::min<int64_t>(8, bits_ - static_cast<int64_t>(i) * 8);
        uint32_t byte = 0;
        for (int64_t bit = 0; bit < count; ++bit) byte |= uint32_t{*from++ != 0} << (7 - bit);
        to[row * bytes + i] = static_cast<uint8_t>(byte);
      }
    }
    out.Commit();
    return absl::OkStatus();
  }

 private:
  const int64_t bits_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  TensorType type = arguments[0].type;
  const bool fits = (type.dtype == DType::kUint8 || type.dtype == DType::kBool) &&
                    !type.shape.empty() && NumElements(type.shape).value_or(0) > 0;
  if (!fits) {
    return WrongArgument("x", absl::StrCat("uint8 or bool of known sizes with one axis at least, "
                                           "found ",
                                           TypeToString(type)));
  }
  BoundRowFunction bound;
  bound.kernel = std::make_shared<PackBits>(type.shape.back());
  type.dtype = DType::kUint8;
  type.shape.back() = (type.shape.back() + 7) / 8;
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
           "x: uint8 or bool of known sizes. Bits behind the last value are 0.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
