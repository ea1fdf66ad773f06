#include "absl/strings/str_cat.h"
#include "server/expr/function.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundView> Bind(absl::Span<const Argument> arguments, bool batched) {
  const TensorType& type = arguments[0].type;
  const auto* sizes =
      arguments[1].literal ? std::get_if<std::vector<int64_t>>(arguments[1].literal) : nullptr;
  const auto* size = arguments[1].literal ? std::get_if<int64_t>(arguments[1].literal) : nullptr;
  if (sizes == nullptr && size == nullptr) {
    return absl::InvalidArgumentError("expected a constant list of integers as shape");
  }
  Shape shape;
  if (sizes != nullptr) {
    shape.assign(sizes->begin(), sizes->end());
  } else {
    shape = {*size};
  }
  if (batched) {
    if (shape.empty() || shape[0] != -1) {
      return absl::InvalidArgumentError(
          "expected -1 as the first size, which is the batch, whose rows must be independent");
    }
    shape.erase(shape.begin());
  }
  const int64_t elements = *NumElements(type.shape);
  int64_t known = 1;
  int64_t* open = nullptr;
  for (int64_t& axis : shape) {
    if (axis == -1 && open == nullptr) {
      open = &axis;
    } else if (axis < 1 || known > elements / axis) {
      known = 0;
      break;
    } else {
      known *= axis;
    }
  }
  if (open != nullptr && known > 0) {
    *open = elements / known;
    known *= *open;
  }
  if (known != elements) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected a shape of ", elements, " elements like ", ShapeToString(type.shape), ", found ",
        ShapeToString(sizes ? Shape(sizes->begin(), sizes->end()) : Shape{*size})));
  }
  return BoundView{shape, {}};
}

const ViewRegistration kRegistration({
    "reshape",
    "reshape(x, shape)",
    "The same elements in C order under another shape, a list of integers; one of them may be -1. "
    "Behind batch the first is -1.",
    Bind,
});

}  // namespace
}  // namespace penstock::expr
