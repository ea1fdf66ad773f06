// concat and stack: tensors side by side, along an axis that they have or a new one.
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"

namespace penstock::expr {
namespace {

constexpr size_t kTensorsMax = 4;

// Takes from each tensor in turn as many bytes as it has inside of the axis.
class Join final : public RowKernel {
 public:
  Join(int64_t outer, std::vector<size_t> stretches)
      : outer_(outer), stretches_(std::move(stretches)) {
    for (const size_t bytes : stretches_) bytes_ += bytes;
  }

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    uint8_t* to = out.Reserve(bytes_ * static_cast<size_t>(outer_));
    for (int64_t o = 0; o < outer_; ++o) {
      for (size_t i = 0; i < stretches_.size(); ++i) {
        std::memcpy(to, arguments[i].data + static_cast<size_t>(o) * stretches_[i], stretches_[i]);
        to += stretches_[i];
      }
    }
    out.Commit();
    return absl::OkStatus();
  }

 private:
  const int64_t outer_;
  const std::vector<size_t> stretches_;
  size_t bytes_ = 0;
};

// The tensors that were given, of one dtype and number of axes; `axes_more`: 1 if the axis is a new one.
absl::Status CheckTensors(absl::Span<const Argument> arguments, size_t* count) {
  for (*count = 0; *count < kTensorsMax && arguments[*count].given; ++*count) {
    const TensorType& type = arguments[*count].type;
    if (type.dtype == DType::kInvalid || type.dtype == DType::kString ||
        !NumElements(type.shape).has_value() || type.dtype != arguments[0].type.dtype ||
        type.shape.size() != arguments[0].type.shape.size()) {
      return WrongArgument(
          absl::StrCat("tensor ", *count + 1).c_str(),
          absl::StrCat("numbers of known sizes, of the dtype and the number of axes of the first, ",
                       TypeToString(arguments[0].type), ", found ", TypeToString(type)));
    }
  }
  for (size_t i = *count; i < kTensorsMax; ++i) {
    if (arguments[i].given) return WrongArgument("tensors", "none left out between others");
  }
  return absl::OkStatus();
}

BoundRowFunction BindJoin(const TensorType& type, int64_t outer, std::vector<size_t> stretches) {
  BoundRowFunction bound;
  bound.type = type;
  for (size_t i = 0; i < stretches.size(); ++i)
    bound.tensor_arguments.push_back(static_cast<int>(i));
  bound.kernel = std::make_shared<Join>(outer, std::move(stretches));
  return bound;
}

// Elements of the axes from `first` on.
size_t ElementsFrom(const Shape& shape, size_t first) {
  size_t elements = 1;
  for (size_t i = first; i < shape.size(); ++i) elements *= static_cast<size_t>(shape[i]);
  return elements;
}

absl::StatusOr<BoundRowFunction> BindConcat(absl::Span<const Argument> arguments) {
  size_t count = 0;
  if (const absl::Status status = CheckTensors(arguments, &count); !status.ok()) return status;
  TensorType type = arguments[0].type;
  const auto axes = static_cast<int64_t>(type.shape.size());
  if (axes == 0) return WrongArgument("a", "one axis at least, found a scalar");
  int64_t from_last = -1;
  if (const absl::Status status = ReadConstant(arguments[4], "axis", -axes, -1, &from_last);
      !status.ok()) {
    return status;
  }
  const auto axis = static_cast<size_t>(axes + from_last);
  std::vector<size_t> stretches;
  type.shape[axis] = 0;
  for (size_t i = 0; i < count; ++i) {
    Shape shape = arguments[i].type.shape;
    type.shape[axis] += shape[axis];
    stretches.push_back(ElementsFrom(shape, axis) * DTypeSize(type.dtype));
    shape[axis] = type.shape[axis];
    if (shape != type.shape) {
      return WrongArgument(absl::StrCat("tensor ", i + 1).c_str(),
                           absl::StrCat("the sizes of the first but for the axis, found ",
                                        TypeToString(arguments[i].type)));
    }
  }
  int64_t outer = 1;
  for (size_t i = 0; i < axis; ++i) outer *= type.shape[i];
  return BindJoin(type, outer, std::move(stretches));
}

absl::StatusOr<BoundRowFunction> BindStack(absl::Span<const Argument> arguments) {
  size_t count = 0;
  if (const absl::Status status = CheckTensors(arguments, &count); !status.ok()) return status;
  TensorType type = arguments[0].type;
  for (size_t i = 1; i < count; ++i) {
    if (arguments[i].type.shape != type.shape) {
      return WrongArgument(absl::StrCat("tensor ", i + 1).c_str(),
                           absl::StrCat("the shape of the first, ", ShapeToString(type.shape),
                                        ", found ", ShapeToString(arguments[i].type.shape)));
    }
  }
  const auto axes = static_cast<int64_t>(type.shape.size()) + 1;
  int64_t from_last = -1;
  if (const absl::Status status = ReadConstant(arguments[4], "axis", -axes, -1, &from_last);
      !status.ok()) {
    return status;
  }
  const auto axis = static_cast<size_t>(axes + from_last);
  const std::vector<size_t> stretches(count,
                                      ElementsFrom(type.shape, axis) * DTypeSize(type.dtype));
  int64_t outer = 1;
  for (size_t i = 0; i < axis; ++i) outer *= type.shape[i];
  type.shape.insert(type.shape.begin() + static_cast<int64_t>(axis), static_cast<int64_t>(count));
  return BindJoin(type, outer, stretches);
}

const RowFunctionRegistration kConcat({
    .name = "concat",
    .signature = "concat(a, b, c=None, d=None, axis=-1)",
    .doc = "Two to four tensors one behind another along an axis (numpy.concatenate).\n"
           "\n"
           "a, b, c, d: numbers or flags of one dtype, of known sizes, which are the same but for "
           "the axis.\n"
           "axis: a negative constant, -1 is the last axis.",
    .bind = BindConcat,
});

const RowFunctionRegistration kStack({
    .name = "stack",
    .signature = "stack(a, b, c=None, d=None, axis=-1)",
    .doc = "Two to four tensors side by side along a new axis (numpy.stack).\n"
           "\n"
           "a, b, c, d: numbers or flags of one dtype and of one shape, which is known.\n"
           "axis: a negative constant: where the new axis stands in the result, -1 is last.",
    .bind = BindStack,
});

}  // namespace
}  // namespace penstock::expr
