#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"

namespace penstock::expr {
namespace {

class ShapeOf final : public RowKernel {
 public:
  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const Shape& shape = arguments[0].shape;
    const size_t bytes = shape.size() * sizeof(int64_t);
    if (bytes > 0) std::memcpy(out.Reserve(bytes), shape.data(), bytes);
    if (bytes > 0) out.Commit();
    return absl::OkStatus();
  }
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& x = arguments[0].type;
  if (x.dtype == DType::kInvalid || x.shape.empty()) {
    return WrongArgument(
        "x", absl::StrCat("a tensor with at least one axis, found ",
                          x.dtype == DType::kInvalid ? "a list or a text" : TypeToString(x)));
  }
  BoundRowFunction bound;
  bound.type = {DType::kInt64, {static_cast<int64_t>(x.shape.size())}};
  bound.kernel = std::make_shared<ShapeOf>();
  bound.tensor_arguments = {0};
  bound.takes_all_axes = true;
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "shape",
    .signature = "shape(x)",
    .doc = "The sizes of the axes, outermost first, as numpy.shape and tf.shape give them: int64. "
           "shape(tokens)[0] is the length of a list whose size only the data tells.\n"
           "\n"
           "x: numbers or strings with at least one axis.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
