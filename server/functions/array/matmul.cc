#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "base/stop_flag.h"
#include "server/expr/arguments.h"
#include "server/expr/number_types.h"
#include "server/kernels/matrix.h"

namespace penstock::expr {
namespace {

// Values as the type that is computed in, where they are not of it.
template <typename T>
const T* Read(DType dtype, const RowValue& value, Arena& scratch) {
  const size_t count = value.bytes / DTypeSize(dtype);
  auto* const numbers = scratch.AllocateArray<T>(count);
  VisitNumber(dtype, [&](auto type) {
    using From = decltype(type);
    for (size_t i = 0; i < count; ++i) {
      From from;
      std::memcpy(&from, value.data + i * sizeof(From), sizeof(From));
      numbers[i] = static_cast<T>(from);
    }
  });
  return numbers;
}

// Between two looks for a stop: some milliseconds.
constexpr size_t kProductsBetweenLooks = size_t{1} << 24;

class MatMul final : public RowKernel {
 public:
  MatMul(DType x, DType w, DType result, bool vector, bool sets_shape)
      : x_(x), w_(w), result_(result), vector_(vector), sets_shape_(sets_shape) {}

  static Shape ShapeOf(const Shape& x, const Shape& w) {
    Shape shape(x.begin(), x.end() - 1);
    if (w.size() == 2) shape.push_back(w[1]);
    return shape;
  }

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    return result_ == DType::kFloat32 ? RunAs<float>(arguments, scratch, out)
                                      : RunAs<double>(arguments, scratch, out);
  }

 private:
  template <typename T>
  absl::Status RunAs(absl::Span<const RowValue> arguments, Arena& scratch, RowOutput& out) const {
    const RowValue& x = arguments[0];
    const RowValue& w = arguments[1];
    const auto inner = static_cast<size_t>(w.shape[0]);
    const auto columns = vector_ ? size_t{1} : static_cast<size_t>(w.shape[1]);
    if (x.shape.back() != w.shape[0]) {
      return absl::DataLossError(
          absl::StrCat("matmul of other sizes than w has: ", ShapeToString(x.shape), " and ",
                       ShapeToString(w.shape)));
    }
    const size_t rows = x.bytes / DTypeSize(x_) / inner;
    if (const absl::Status status =
            CheckElements(1, static_cast<int64_t>(rows), static_cast<int64_t>(columns));
        !status.ok()) {
      return status;
    }
    if (sets_shape_) out.SetShape(ShapeOf(x.shape, w.shape));
    const T* const left = Read<T>(x_, x, scratch);
    const T* const right = Read<T>(w_, w, scratch);
    auto* const to = reinterpret_cast<T*>(out.Reserve(rows * columns * sizeof(T)));
    const size_t most = std::max<size_t>(1, kProductsBetweenLooks / (inner * columns));
    for (size_t row = 0; row < rows; row += most) {
      if (row > 0) CheckStop();
      kernels::MultiplyMatrix(left + row * inner, right, std::min(most, rows - row), inner, columns,
                              to + row * columns);
    }
    InPieces(rows * columns, [&](size_t first, size_t some) {
      for (size_t i = first; i < first + some; ++i) {
        if (to[i] != to[i]) to[i] = -std::numeric_limits<T>::quiet_NaN();
      }
    });
    out.Commit();
    return absl::OkStatus();
  }

  const DType x_;
  const DType w_;
  const DType result_;
  const bool vector_;
  const bool sets_shape_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& x = arguments[0].type;
  const TensorType& w = arguments[1].type;
  if (!VisitNumber(x.dtype, [](auto) {}) || x.shape.empty()) {
    return WrongArgument("x",
                         absl::StrCat("numbers of one axis at least, found ", TypeToString(x)));
  }
  const auto elements = NumElements(w.shape);
  if (!IsFloating(w.dtype) || !VisitNumber(w.dtype, [](auto) {}) || w.shape.empty() ||
      w.shape.size() > 2 || !elements || *elements == 0) {
    return WrongArgument(
        "w", absl::StrCat("floats of one or two axes of known sizes, found ", TypeToString(w)));
  }
  if (x.shape.back() != kUnknownSize && x.shape.back() != w.shape[0]) {
    return WrongArgument("w", absl::StrCat("as many rows as x has columns, ", x.shape.back(),
                                           ", found ", TypeToString(w)));
  }
  // NumPy's promotion.
  const bool narrow = x.dtype == DType::kFloat32 || (IsInteger(x.dtype) && DTypeSize(x.dtype) < 4);
  const DType result = w.dtype == DType::kFloat32 && narrow ? DType::kFloat32 : DType::kFloat64;
  BoundRowFunction bound;
  bound.type = {result, MatMul::ShapeOf(x.shape, w.shape)};
  bound.kernel = std::make_shared<MatMul>(x.dtype, w.dtype, result, w.shape.size() == 1,
                                          !NumElements(bound.type.shape).has_value());
  bound.tensor_arguments = {0, 1};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "matmul",
    .signature = "matmul(x, w)",
    .doc = "The matrix product of a tensor's last axis with a matrix (numpy.matmul), such as a "
           "change of colours or a projection.\n"
           "\n"
           "x: numbers of shape (..., k).\n"
           "w: floats of shape (k, n), as a constant has them, or (k,): a result without the last "
           "axis.\n"
           "\n"
           "The result is float32 where w is and x is float32 or an integer of 8 or 16 bits, else "
           "float64. Products are added one after the\n"
           "other: within rounding of NumPy's, whose order depends on its library.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
