#include "server/expr/axis.h"

#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"
#include "server/expr/number_types.h"

namespace penstock::expr {

absl::StatusOr<size_t> ReadAxis(const Argument& argument, const TensorType& type) {
  const auto num_axes = static_cast<int64_t>(type.shape.size());
  if (num_axes == 0) {
    return WrongArgument("x", absl::StrCat("an axis at least, found ", TypeToString(type)));
  }
  int64_t axis = -1;
  if (const absl::Status status = ReadConstant(argument, "axis", -num_axes, -1, &axis);
      !status.ok()) {
    return status;
  }
  return static_cast<size_t>(axis + num_axes);
}

absl::StatusOr<size_t> ReadAxisOfNumbers(const TensorType& x, const Argument& argument) {
  if (!VisitNumber(x.dtype, [](auto) {})) {
    return WrongArgument("x", absl::StrCat("numbers, found ", TypeToString(x)));
  }
  return ReadAxis(argument, x);
}

}  // namespace penstock::expr
