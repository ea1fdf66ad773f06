// concat and stack: tensors side by side, along an axis that they have or a new one.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "server/expr/arguments.h"
#include "server/expr/string_row.h"

namespace penstock::expr {
namespace {

constexpr size_t kTensorsMax = 4;

// Elements of the axes from `first` on.
size_t ElementsFrom(const Shape& shape, size_t first) {
  size_t elements = 1;
  for (size_t i = first; i < shape.size(); ++i) elements *= static_cast<size_t>(shape[i]);
  return elements;
}

// Of a stretch beside its bytes, as StopLook counts it.
constexpr uint64_t kStretchWork = 16;

// Takes from each tensor in turn as many bytes as it has inside of the axis.
class Join final : public RowKernel {
 public:
  Join(int64_t outer, std::vector<size_t> stretches)
      : outer_(outer), stretches_(std::move(stretches)) {
    for (const size_t bytes : stretches_) bytes_ += bytes;
  }

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    uint8_t* to = out.Reserve(bytes_ * static_cast<size_t>(outer_));
    StopLook look;
    for (int64_t o = 0; o < outer_; ++o) {
      for (size_t i = 0; i < stretches_.size(); ++i) {
        look.Did(stretches_[i] + kStretchWork);
        CopyInPieces(to, arguments[i].data + static_cast<size_t>(o) * stretches_[i], stretches_[i]);
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

// The shape of the tensors of a row side by side, and how many elements each has inside of the
// axis. `is_new`: whether the axis is one that the tensors do not have.
absl::StatusOr<Shape> JoinedShape(absl::Span<const RowValue> tensors, size_t axis, bool is_new,
                                  absl::InlinedVector<size_t, kTensorsMax>* stretches) {
  Shape shape = tensors[0].shape;
  if (is_new) shape.insert(shape.begin() + static_cast<int64_t>(axis), 1);
  int64_t along = 0;
  for (const RowValue& tensor : tensors) {
    Shape own = tensor.shape;
    if (is_new) own.insert(own.begin() + static_cast<int64_t>(axis), 1);
    along += own[axis];
    stretches->push_back(ElementsFrom(own, axis));
    own[axis] = shape[axis];
    if (own != shape) {
      return absl::DataLossError(absl::StrCat("tensors of shapes ", ShapeToString(tensors[0].shape),
                                              " and ", ShapeToString(tensor.shape),
                                              " do not join"));
    }
  }
  shape[axis] = along;
  const auto elements = CountElements(shape);
  if (!elements.ok()) return elements.status();
  return shape;
}

// The same of tensors whose sizes only the data tells.
class JoinRows final : public RowKernel {
 public:
  JoinRows(size_t axis, bool is_new, bool sets_shape, size_t element_bytes)
      : axis_(axis), is_new_(is_new), sets_shape_(sets_shape), element_bytes_(element_bytes) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    absl::InlinedVector<size_t, kTensorsMax> stretches;
    const auto shape = JoinedShape(arguments, axis_, is_new_, &stretches);
    if (!shape.ok()) return shape.status();
    for (size_t& stretch : stretches) stretch *= element_bytes_;
    if (sets_shape_) out.SetShape(*shape);
    uint8_t* to = out.Reserve(static_cast<size_t>(*NumElements(*shape)) * element_bytes_);
    size_t outer = 1;
    for (size_t i = 0; i < axis_; ++i) outer *= static_cast<size_t>((*shape)[i]);
    StopLook look;
    for (size_t o = 0; o < outer; ++o) {
      for (size_t i = 0; i < stretches.size(); ++i) {
        look.Did(stretches[i] + kStretchWork);
        CopyInPieces(to, arguments[i].data + o * stretches[i], stretches[i]);
        to += stretches[i];
      }
    }
    out.Commit();
    return absl::OkStatus();
  }

 private:
  const size_t axis_;
  const bool is_new_;
  const bool sets_shape_;
  const size_t element_bytes_;
};

// The same of strings.
class JoinStrings final : public RowKernel {
 public:
  JoinStrings(size_t axis, bool is_new, bool sets_shape)
      : axis_(axis), is_new_(is_new), sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    absl::InlinedVector<absl::Span<const absl::string_view>, kTensorsMax> parts;
    absl::InlinedVector<size_t, kTensorsMax> stretches;
    size_t count = 0;
    for (const RowValue& argument : arguments) {
      parts.push_back(StringsOf(argument, scratch));
      count += parts.back().size();
    }
    const auto shape = JoinedShape(arguments, axis_, is_new_, &stretches);
    if (!shape.ok()) return shape.status();
    if (sets_shape_) out.SetShape(*shape);
    auto* const strings = scratch.AllocateArray<absl::string_view>(count);
    auto* next = strings;
    size_t outer = 1;
    for (size_t i = 0; i < axis_; ++i) outer *= static_cast<size_t>((*shape)[i]);
    StopLook look;
    for (size_t o = 0; o < outer; ++o) {
      for (size_t i = 0; i < parts.size(); ++i) {
        look.Did(stretches[i] * sizeof(*next) + kStretchWork);
        InPieces(stretches[i], [&](size_t first, size_t some) {
          next = std::copy_n(parts[i].begin() + o * stretches[i] + first, some, next);
        });
      }
    }
    return PutStrings({strings, count}, /*is_scalar=*/false, out);
  }

 private:
  const size_t axis_;
  const bool is_new_;
  const bool sets_shape_;
};

// The tensors that were given, of one dtype and number of axes.
absl::Status CheckTensors(absl::Span<const Argument> arguments, size_t* count) {
  for (*count = 0; *count < kTensorsMax && arguments[*count].given; ++*count) {
    const TensorType& type = arguments[*count].type;
    if (type.dtype == DType::kInvalid || type.dtype != arguments[0].type.dtype ||
        type.shape.size() != arguments[0].type.shape.size()) {
      return WrongArgument(
          absl::StrCat("tensor ", *count + 1).c_str(),
          absl::StrCat("a tensor of the dtype and the number of axes of the first, ",
                       TypeToString(arguments[0].type), ", found ", TypeToString(type)));
    }
  }
  for (size_t i = *count; i < kTensorsMax; ++i) {
    if (arguments[i].given) return WrongArgument("tensors", "none left out between others");
  }
  return absl::OkStatus();
}

// The axis that a constant names, counted from the last.
absl::StatusOr<size_t> ReadAxis(const Argument& argument, size_t axes) {
  int64_t from_last = -1;
  const auto count = static_cast<int64_t>(axes);
  if (const absl::Status status = ReadConstant(argument, "axis", -count, -1, &from_last);
      !status.ok()) {
    return status;
  }
  return static_cast<size_t>(count + from_last);
}

// `shapes`: of the tensors, all with the axis.
absl::StatusOr<BoundRowFunction> BindJoin(DType dtype, std::vector<Shape> shapes, size_t axis,
                                          bool is_new) {
  Shape joined = shapes[0];
  bool known = true;
  for (size_t i = 0; i < shapes.size(); ++i) {
    known &= !HasUnknownSize(shapes[i]);
    for (size_t a = 0; a < joined.size(); ++a) {
      if (a == axis || shapes[i][a] == kUnknownSize || shapes[i][a] == joined[a]) continue;
      if (joined[a] != kUnknownSize) {
        Shape own = shapes[i];
        if (is_new) own.erase(own.begin() + static_cast<int64_t>(axis));
        return WrongArgument(
            absl::StrCat("tensor ", i + 1).c_str(),
            absl::StrCat(is_new ? "the shape of the first, found "
                                : "the sizes of the first but for the axis, found ",
                         TypeToString({dtype, own})));
      }
      joined[a] = shapes[i][a];
    }
  }
  joined[axis] = 0;
  std::vector<size_t> stretches;
  for (const Shape& shape : shapes) {
    if (joined[axis] != kUnknownSize) {
      joined[axis] = shape[axis] == kUnknownSize ? kUnknownSize : joined[axis] + shape[axis];
    }
    if (known && dtype != DType::kString)
      stretches.push_back(ElementsFrom(shape, axis) * DTypeSize(dtype));
  }
  BoundRowFunction bound;
  bound.type = {dtype, joined};
  for (size_t i = 0; i < shapes.size(); ++i) bound.tensor_arguments.push_back(static_cast<int>(i));
  if (dtype == DType::kString) {
    bound.kernel = std::make_shared<JoinStrings>(axis, is_new, HasUnknownSize(joined));
  } else if (known) {
    int64_t outer = 1;
    for (size_t i = 0; i < axis; ++i) outer *= joined[i];
    bound.kernel = std::make_shared<Join>(outer, std::move(stretches));
  } else {
    bound.kernel =
        std::make_shared<JoinRows>(axis, is_new, HasUnknownSize(joined), DTypeSize(dtype));
  }
  return bound;
}

absl::StatusOr<BoundRowFunction> BindConcat(absl::Span<const Argument> arguments) {
  size_t count = 0;
  if (const absl::Status status = CheckTensors(arguments, &count); !status.ok()) return status;
  const TensorType& first = arguments[0].type;
  if (first.shape.empty()) return WrongArgument("a", "one axis at least, found a scalar");
  const auto axis = ReadAxis(arguments[4], first.shape.size());
  if (!axis.ok()) return axis.status();
  std::vector<Shape> shapes;
  for (size_t i = 0; i < count; ++i) shapes.push_back(arguments[i].type.shape);
  return BindJoin(first.dtype, std::move(shapes), *axis, /*is_new=*/false);
}

absl::StatusOr<BoundRowFunction> BindStack(absl::Span<const Argument> arguments) {
  size_t count = 0;
  if (const absl::Status status = CheckTensors(arguments, &count); !status.ok()) return status;
  const TensorType& first = arguments[0].type;
  const auto axis = ReadAxis(arguments[4], first.shape.size() + 1);
  if (!axis.ok()) return axis.status();
  std::vector<Shape> shapes;
  for (size_t i = 0; i < count; ++i) {
    shapes.push_back(arguments[i].type.shape);
    shapes.back().insert(shapes.back().begin() + static_cast<int64_t>(*axis), 1);
  }
  return BindJoin(first.dtype, std::move(shapes), *axis, /*is_new=*/true);
}

const RowFunctionRegistration kConcat({
    .name = "concat",
    .signature = "concat(a, b, c=None, d=None, axis=-1)",
    .doc = "Two to four tensors one after another along an axis (numpy.concatenate).\n"
           "\n"
           "a, b, c, d: numbers, flags or strings of one dtype, whose sizes are the same but for "
           "the axis.\n"
           "axis: a negative constant, -1 is the last axis.\n"
           "\n"
           "Where only the data tells the sizes, others than these are an error of the record.",
    .bind = BindConcat,
});

const RowFunctionRegistration kStack({
    .name = "stack",
    .signature = "stack(a, b, c=None, d=None, axis=-1)",
    .doc = "Two to four tensors side by side along a new axis (numpy.stack).\n"
           "\n"
           "a, b, c, d: numbers, flags or strings of one dtype and of one shape.\n"
           "axis: a negative constant: where the new axis stands in the result, -1 is last.\n"
           "\n"
           "Where only the data tells the shapes, different ones are an error of the record.",
    .bind = BindStack,
});

}  // namespace
}  // namespace penstock::expr
