// reshape and ensure_shape: the same elements in the same order, under another shape, or under
// their own made sure of.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/row_shape.h"
#include "server/expr/arguments.h"
#include "server/expr/data_integers.h"
#include "server/expr/function.h"
#include "server/expr/graph.h"
#include "server/expr/string_row.h"

namespace penstock::expr {
namespace {

// A size that is left open where a shape is written.
constexpr int64_t kOpen = -1;

// A constant shape as it is written.
absl::StatusOr<Shape> ReadSizes(const Argument& argument) {
  const auto* sizes =
      argument.literal ? std::get_if<std::vector<int64_t>>(argument.literal) : nullptr;
  const auto* size = argument.literal ? std::get_if<int64_t>(argument.literal) : nullptr;
  if (sizes != nullptr) return Shape(sizes->begin(), sizes->end());
  if (size != nullptr) return Shape{*size};
  return absl::InvalidArgumentError("expected a constant list of integers as shape");
}

// That of one row: without the first size, which stands for the batch.
absl::StatusOr<Shape> OfRow(Shape shape, bool batched) {
  if (!batched) return shape;
  if (shape.empty() || shape[0] != kOpen) {
    return absl::InvalidArgumentError(
        "expected -1 as the first size, which is the batch, whose rows must be independent");
  }
  shape.erase(shape.begin());
  return shape;
}

// Works out what is open of a shape, whose sizes are `least` or more, for so many elements. False:
// there is no such shape.
bool Fill(int64_t elements, Shape* shape, int64_t least = 1) {
  int64_t known = 1;
  int64_t* open = nullptr;
  for (int64_t& axis : *shape) {
    if (axis == kOpen && open == nullptr) {
      open = &axis;
    } else if (axis < least || (axis > 0 && known > kMaxRowElements / axis)) {
      return false;
    } else {
      known *= axis;
    }
  }
  if (open != nullptr) {
    if (known == 0) return false;
    *open = elements / known;
    known *= *open;
  }
  return known == elements;
}

// The row itself, once its shape is known to fit.
class Reshaped : public RowKernel {
 public:
  explicit Reshaped(TensorType type)
      : shape_(std::move(type.shape)),
        of_strings_(type.dtype == DType::kString),
        sets_shape_(HasUnknownSize(shape_)) {}

  // The result's, or an error of the row. `sizes`: what the data gives of it.
  virtual absl::StatusOr<Shape> ShapeOf(const Shape& row,
                                        absl::Span<const RowValue> sizes) const = 0;

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& in = arguments[0];
    const auto shape = ShapeOf(in.shape, arguments.subspan(1));
    if (!shape.ok()) return shape.status();
    if (sets_shape_) out.SetShape(*shape);
    if (of_strings_) return PutStrings(StringsOf(in, scratch), shape_.empty(), out);
    // In whole values, while they are warm for what stands behind.
    constexpr size_t kTileBytes = 4096;
    for (size_t done = 0; done < in.bytes; done += kTileBytes) {
      const size_t bytes = std::min(kTileBytes, in.bytes - done);
      std::memcpy(out.Reserve(bytes), in.data + done, bytes);
      out.Commit();
    }
    return absl::OkStatus();
  }

 protected:
  const Shape shape_;

 private:
  const bool of_strings_;
  const bool sets_shape_;
};

class Reshape final : public Reshaped {
 public:
  using Reshaped::Reshaped;

  absl::StatusOr<Shape> ShapeOf(const Shape& row, absl::Span<const RowValue>) const override {
    Shape shape = shape_;
    if (Fill(*NumElements(row), &shape)) return shape;
    return NoneOf(row, shape_);
  }

  static absl::Status NoneOf(const Shape& row, const Shape& written) {
    return absl::DataLossError(absl::StrCat("reshape: ", *NumElements(row), " elements of shape ",
                                            ShapeToString(row), " are none of shape ",
                                            ShapeToString(written)));
  }
};

// To sizes of the data.
class ReshapeToData final : public Reshaped {
 public:
  ReshapeToData(TensorType type, DataIntegers sizes)
      : Reshaped(std::move(type)), sizes_(std::move(sizes)) {}

  absl::StatusOr<Shape> ShapeOf(const Shape& row, absl::Span<const RowValue> sizes) const override {
    IntegersRead written;
    if (absl::Status status = sizes_.Read(sizes, &written); !status.ok()) return status;
    Shape shape(written.begin(), written.end());
    if (Fill(*NumElements(row), &shape, 0)) return shape;
    return Reshape::NoneOf(row, Shape(written.begin(), written.end()));
  }

 private:
  const DataIntegers sizes_;
};

class EnsureShape final : public Reshaped {
 public:
  using Reshaped::Reshaped;

  absl::StatusOr<Shape> ShapeOf(const Shape& row, absl::Span<const RowValue>) const override {
    if (FitsShape(shape_, row)) return row;
    return absl::DataLossError(absl::StrCat("ensure_shape: expected ", ShapeToString(shape_),
                                            ", found ", ShapeToString(row)));
  }
};

template <typename Kernel>
BoundRowFunction Bound(DType dtype, const Shape& shape) {
  BoundRowFunction bound;
  bound.type = {dtype, shape};
  bound.kernel = std::make_shared<Kernel>(bound.type);
  bound.tensor_arguments = {0};
  return bound;
}

absl::StatusOr<BoundView> BindReshape(absl::Span<const Argument> arguments, bool batched) {
  const auto written = ReadSizes(arguments[1]);
  if (!written.ok()) return written.status();
  auto shape = OfRow(*written, batched);
  if (!shape.ok()) return shape.status();
  const Shape& own = arguments[0].type.shape;
  if (!Fill(*NumElements(own), &*shape)) {
    return absl::InvalidArgumentError(absl::StrCat("expected a shape of ", *NumElements(own),
                                                   " elements like ", ShapeToString(own),
                                                   ", found ", ShapeToString(*written)));
  }
  return BoundView{*std::move(shape), {}};
}

absl::StatusOr<BoundRowFunction> BindReshapeToData(absl::Span<const Argument> arguments,
                                                   bool batched) {
  const TensorType& sizes = arguments[1].type;
  if (batched) {
    return absl::InvalidArgumentError(
        "expected constant sizes, of which the first is -1, the batch, whose rows must be "
        "independent");
  }
  if (sizes.shape.size() != 1 || sizes.shape[0] == kUnknownSize) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected as many sizes as are known before, in one list, found ", TypeToString(sizes)));
  }
  DataIntegers integers;
  integers.AddTensor(arguments[1], 1, "reshape: a size", sizes.shape, kOpen, kMaxRowElements);
  BoundRowFunction bound;
  bound.type = {arguments[0].type.dtype, Shape(static_cast<size_t>(sizes.shape[0]), kUnknownSize)};
  bound.kernel = std::make_shared<ReshapeToData>(bound.type, std::move(integers));
  bound.tensor_arguments = {0, 1};
  return bound;
}

absl::StatusOr<BoundRowFunction> BindReshapeOfRow(absl::Span<const Argument> arguments,
                                                  bool batched) {
  const TensorType& x = arguments[0].type;
  if (arguments[1].literal == nullptr && IsInteger(arguments[1].type.dtype))
    return BindReshapeToData(arguments, batched);
  if (NumElements(x.shape).has_value()) {
    const auto view = BindReshape(arguments, batched);
    if (!view.ok()) return view.status();
    return Bound<Reshape>(x.dtype, view->shape);
  }
  const auto written = ReadSizes(arguments[1]);
  if (!written.ok()) return written.status();
  const auto shape = OfRow(*written, batched);
  if (!shape.ok()) return shape.status();
  // Any number of elements that the sizes divide.
  Shape filled = *shape;
  if (std::count(filled.begin(), filled.end(), kOpen) == 0) filled.push_back(kOpen);
  if (!Fill(0, &filled)) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected sizes of at least 1, one of them -1 at most, and of ",
                     kMaxRowElements, " elements at most, found ", ShapeToString(*written)));
  }
  return Bound<Reshape>(x.dtype, *shape);
}

// The shape that `own` and the one written leave.
absl::StatusOr<Shape> Ensure(absl::Span<const Argument> arguments, bool batched) {
  const auto written = ReadSizes(arguments[1]);
  if (!written.ok()) return written.status();
  auto shape = OfRow(*written, batched);
  if (!shape.ok()) return shape.status();
  const Shape& own = arguments[0].type.shape;
  bool fits = shape->size() == own.size();
  for (size_t i = 0; fits && i < own.size(); ++i) {
    int64_t& size = (*shape)[i];
    fits = size >= kOpen && (size == kOpen || own[i] == kUnknownSize || size == own[i]);
    if (size == kOpen) size = own[i];
  }
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat("expected a shape that fits ",
                                                   ShapeToString(own), ", -1 for any size, found ",
                                                   ShapeToString(*written)));
  }
  return shape;
}

absl::StatusOr<BoundView> BindEnsureShape(absl::Span<const Argument> arguments, bool batched) {
  auto shape = Ensure(arguments, batched);
  if (!shape.ok()) return shape.status();
  return BoundView{*std::move(shape), {}};
}

absl::StatusOr<BoundRowFunction> BindEnsureShapeOfRow(absl::Span<const Argument> arguments,
                                                      bool batched) {
  const auto shape = Ensure(arguments, batched);
  if (!shape.ok()) return shape.status();
  return Bound<EnsureShape>(arguments[0].type.dtype, *shape);
}

const ViewRegistration kReshape({
    "reshape",
    "reshape(x, shape)",
    "The same elements in C order under another shape, a list of integers; one of them may be -1. "
    "After batch the first is -1. Where only the data tells how many elements there are, another "
    "number than the shape's is an error of "
    "the record. The list may be of the data: reshape(x, stack(height, width, 3)).",
    BindReshape,
    BindReshapeOfRow,
});

const ViewRegistration kEnsureShape({
    "ensure_shape",
    "ensure_shape(x, shape)",
    "The same tensor, whose shape is known from here on (tf.ensure_shape): a list of integers, -1 "
    "for any size. After batch the first "
    "is -1. A tensor of another shape is an error of its record, or of the spec where its sizes "
    "are known.",
    BindEnsureShape,
    BindEnsureShapeOfRow,
});

}  // namespace
}  // namespace penstock::expr
