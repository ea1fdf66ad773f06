// NumPy's reductions: one value of all that lie along an axis, or of a whole element.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "base/stop_flag.h"
#include "server/expr/arguments.h"
#include "server/expr/axis.h"
#include "server/expr/number_types.h"
#include "server/kernels/extreme.h"
#include "server/kernels/reduce.h"

namespace penstock::expr {
namespace {

enum class Kind : uint8_t { kSum, kProd, kMean, kVar, kStd, kMin, kMax, kAny, kAll };

// `function` gets a value of the type; flags are bytes.
template <typename Function>
bool VisitValue(DType dtype, const Function& function) {
  if (dtype == DType::kBool) return function(uint8_t{}), true;
  return VisitNumber(dtype, function);
}

DType ResultType(Kind kind, DType dtype) {
  switch (kind) {
    case Kind::kSum:
    case Kind::kProd:
      if (IsFloating(dtype)) return dtype;
      return dtype == DType::kBool || IsSigned(dtype) ? DType::kInt64 : DType::kUint64;
    case Kind::kMean:
    case Kind::kVar:
    case Kind::kStd:
      return dtype == DType::kFloat32 ? DType::kFloat32 : DType::kFloat64;
    case Kind::kMin:
    case Kind::kMax:
      return dtype;
    case Kind::kAny:
    case Kind::kAll:
      return DType::kBool;
  }
  return dtype;
}

bool Averages(Kind kind) { return kind == Kind::kMean || kind == Kind::kVar || kind == Kind::kStd; }

// Integers wrap in 64 bits, floats are added and multiplied in float64 and rounded once.
template <typename T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

// What means and variances are of.
template <typename T>
using Averaged = std::conditional_t<std::is_same_v<T, float>, float, double>;

// At most so many values of a row are added one after the other, more by the tree of
// kernels::Sum().
constexpr int64_t kShortRow = 16;

template <int kSize, typename T>
void TransposeRowsOf(const T* in, int64_t rows, T* to) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int i = 0; i < kSize; ++i) to[i * rows + row] = in[row * kSize + i];
  }
}

template <typename T>
void TransposeRows(const T* in, int64_t size, int64_t rows, T* to) {
  switch (size) {
    case 2:
      return TransposeRowsOf<2>(in, rows, to);
    case 3:
      return TransposeRowsOf<3>(in, rows, to);
    case 4:
      return TransposeRowsOf<4>(in, rows, to);
    default:
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t i = 0; i < size; ++i) to[i * rows + row] = in[row * size + i];
      }
  }
}

// Every NaN is the one that element-wise arithmetic makes.
template <typename T>
void Put(T value, uint8_t* to) {
  if constexpr (std::is_floating_point_v<T>) {
    if (value != value) value = -std::numeric_limits<T>::quiet_NaN();
  }
  std::memcpy(to, &value, sizeof(T));
}

// Fold() for one to four places, which stay in registers: a load of what was just stored takes
// longer than an addition.
template <int kInner, typename T, typename A, typename Take>
void FoldFew(const AxisView& view, const T* in, A first, A* totals, const Take& take) {
  A local[kInner];
  std::fill_n(local, kInner, first);
  InPieces(static_cast<size_t>(view.size), [&](size_t first_step, size_t some) {
    A piece[kInner];
    std::copy_n(local, kInner, piece);
    const T* from = in + first_step * kInner;
    for (size_t i = 0; i < some; ++i, from += kInner) {
      for (int n = 0; n < kInner; ++n) piece[n] = take(piece[n], from[n], n);
    }
    std::copy_n(piece, kInner, local);
  });
  std::copy_n(local, kInner, totals);
}

// For each place behind the axis: start with `first`, and take the values along the axis one after
// the other.
template <typename T, typename A, typename Take>
A* Fold(const AxisView& view, const T* in, A first, A* totals, const Take& take) {
  switch (view.inner) {
    case 1:
      FoldFew<1>(view, in, first, totals, take);
      return totals;
    case 2:
      FoldFew<2>(view, in, first, totals, take);
      return totals;
    case 3:
      FoldFew<3>(view, in, first, totals, take);
      return totals;
    case 4:
      FoldFew<4>(view, in, first, totals, take);
      return totals;
    default:
      break;
  }
  std::fill_n(totals, view.inner, first);
  StopLook look;
  for (int64_t i = 0; i < view.size; ++i, in += view.inner) {
    look.Did(static_cast<uint64_t>(view.inner) * sizeof(T));
    for (int64_t n = 0; n < view.inner; ++n) totals[n] = take(totals[n], in[n], n);
  }
  return totals;
}

// The sums along the axis, of the squared distances from `centres` if there are any. Step i of the
// axis is added to partial sum i % together, each in order; these are then added in pairs of
// halves, as kernels::Sum() does.
template <typename T>
Wide<T>* SumAlong(const AxisView& view, const T* in, Arena& scratch,
                  const double* centres = nullptr) {
  const auto inner = static_cast<size_t>(view.inner);
  const auto size = static_cast<size_t>(view.size);
  if constexpr (!std::is_floating_point_v<T>) {
    return Fold(view, in, uint64_t{0}, scratch.AllocateArray<uint64_t>(inner),
                [](uint64_t a, T x, int64_t) { return a + static_cast<uint64_t>(x); });
  } else {
    if (inner == 1) {
      auto* const total = scratch.AllocateArray<double>(1);
      *total =
          centres == nullptr ? kernels::Sum(in, size) : kernels::SumOfSquares(in, size, *centres);
      return total;
    }
    size_t together = 1;
    while (2 * together <= size && 2 * together * inner <= kernels::kSumLanes) together *= 2;
    const size_t columns = together * inner, rounds = size / together;
    auto* const totals = scratch.AllocateArray<double>(columns);
    double* repeated = nullptr;
    if (centres != nullptr) {
      repeated = scratch.AllocateArray<double>(columns);
      for (size_t i = 0; i < together; ++i) std::copy_n(centres, inner, repeated + i * inner);
    }
    kernels::SumColumns(in, rounds, columns, repeated, totals);
    for (size_t i = rounds * columns; i < size * inner; ++i) {
      const size_t place = i - rounds * columns;
      const double value = static_cast<double>(in[i]);
      totals[place] +=
          centres == nullptr ? value : (value - repeated[place]) * (value - repeated[place]);
    }
    for (size_t half = columns / 2; half > 0 && half >= inner; half /= 2) {
      for (size_t i = 0; i < half; ++i) totals[i] += totals[i + half];
    }
    return totals;
  }
}

class Reduce final : public RowKernel {
 public:
  // `axis`: negative for all.
  Reduce(Kind kind, DType dtype, int64_t axis, bool keeps_axes, double ddof, bool sets_shape)
      : kind_(kind),
        dtype_(dtype),
        result_bytes_(DTypeSize(ResultType(kind, dtype))),
        axis_(axis),
        keeps_axes_(keeps_axes),
        ddof_(ddof),
        sets_shape_(sets_shape),
        take_(kernels::FindExtreme(
            dtype, kind == Kind::kMin ? kernels::Extreme::kLeast : kernels::Extreme::kGreatest)) {}

  static Shape ShapeOf(Shape shape, int64_t axis, bool keeps_axes) {
    if (axis < 0) return keeps_axes ? Shape(shape.size(), 1) : Shape{};
    if (keeps_axes) {
      shape[static_cast<size_t>(axis)] = 1;
    } else {
      shape.erase(shape.begin() + axis);
    }
    return shape;
  }

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& in = arguments[0];
    const Shape all = {static_cast<int64_t>(in.bytes / DTypeSize(dtype_))};
    const AxisView view =
        axis_ < 0 ? AxisView(all, 0) : AxisView(in.shape, static_cast<size_t>(axis_));
    if (view.size == 0 && (kind_ == Kind::kMin || kind_ == Kind::kMax)) {
      return absl::DataLossError(
          absl::StrCat("the least or greatest of no elements: ", ShapeToString(in.shape)));
    }
    if (sets_shape_) out.SetShape(ShapeOf(in.shape, axis_, keeps_axes_));
    uint8_t* to = out.Reserve(static_cast<size_t>(view.outer * view.inner) * result_bytes_);
    VisitValue(dtype_, [&](auto type) {
      using T = decltype(type);
      const T* from = reinterpret_cast<const T*>(in.data);
      if (view.inner == 1 && view.size <= kShortRow) return RunShort(view, from, scratch, to);
      StopLook look;
      for (int64_t o = 0; o < view.outer; ++o, from += view.size * view.inner) {
        look.Did(static_cast<uint64_t>(view.size * view.inner) * sizeof(T));
        const Arena::Mark mark = scratch.GetMark();
        RunOuter(view, from, scratch, to);
        to += static_cast<size_t>(view.inner) * result_bytes_;
        scratch.Rewind(mark);
      }
    });
    out.Commit();
    return absl::OkStatus();
  }

 private:
  // Short rows, one behind the other: what a call for each would cost is more than its arithmetic.
  // A tile of them is transposed, so that many are reduced side by side.
  template <typename T>
  void RunShort(const AxisView& view, const T* in, Arena& scratch, uint8_t* to) const {
    constexpr int64_t kTileRows = 128;
    T* const tile = scratch.AllocateArray<T>(static_cast<size_t>(view.size * kTileRows));
    AxisView columns = view;
    columns.outer = 1;
    StopLook look;
    for (int64_t row = 0; row < view.outer; row += columns.inner) {
      look.Did(static_cast<uint64_t>(view.size * kTileRows) * sizeof(T));
      columns.inner = std::min(kTileRows, view.outer - row);
      TransposeRows(in + row * view.size, view.size, columns.inner, tile);
      const Arena::Mark mark = scratch.GetMark();
      RunOuter(columns, tile, scratch, to + static_cast<size_t>(row) * result_bytes_);
      scratch.Rewind(mark);
    }
  }

  template <typename T>
  void RunOuter(const AxisView& view, const T* in, Arena& scratch, uint8_t* to) const {
    if (Averages(kind_)) return Average(view, in, scratch, to);
    const auto inner = static_cast<size_t>(view.inner);
    const auto put_all = [&](const auto* totals) {
      using A = std::decay_t<decltype(totals[0])>;
      for (size_t n = 0; n < inner; ++n) {
        if constexpr (std::is_same_v<A, double>) {
          Put(static_cast<T>(totals[n]), to + n * sizeof(T));
        } else {
          Put(totals[n], to + n * sizeof(A));
        }
      }
    };
    using A = Wide<T>;
    switch (kind_) {
      case Kind::kSum:
        return put_all(SumAlong(view, in, scratch));
      case Kind::kProd:
        return put_all(Fold(view, in, A{1}, scratch.AllocateArray<A>(inner),
                            [](A a, T x, int64_t) { return a * static_cast<A>(x); }));
      case Kind::kMin:
      case Kind::kMax: {
        const T* const best = TakeExtremes(view, in, scratch);
        for (size_t n = 0; n < inner; ++n) Put(best[n], to + n * sizeof(T));
        return;
      }
      case Kind::kAny:
        return put_all(Fold(view, in, uint8_t{0}, scratch.AllocateArray<uint8_t>(inner),
                            [](uint8_t a, T x, int64_t) -> uint8_t { return a | (x != 0); }));
      case Kind::kAll:
        return put_all(Fold(view, in, uint8_t{1}, scratch.AllocateArray<uint8_t>(inner),
                            [](uint8_t a, T x, int64_t) -> uint8_t { return a & (x != 0); }));
      default:
        return;
    }
  }

  // Step i of the axis is compared with partial result i % together, each in order; these are then
  // compared in pairs of halves. Which of 0.0 and -0.0 is given follows from the sizes alone,
  // whatever the instruction set.
  template <typename T>
  T* TakeExtremes(const AxisView& view, const T* in, Arena& scratch) const {
    constexpr size_t kElements = 512;
    const auto inner = static_cast<size_t>(view.inner);
    const auto size = static_cast<size_t>(view.size);
    size_t together = 1;
    while (2 * together <= size && 2 * together * inner <= kElements) together *= 2;
    T* const best = scratch.AllocateArray<T>(together * inner);
    std::copy_n(in, together * inner, best);
    size_t done = together;
    for (; done + together <= size; done += together)
      take_(best, in + done * inner, together * inner);
    take_(best, in + done * inner, (size - done) * inner);
    for (size_t half = together / 2; half > 0; half /= 2)
      take_(best, best + half * inner, half * inner);
    return best;
  }

  // Mean, variance and deviation in float64.
  template <typename T>
  void Average(const AxisView& view, const T* in, Arena& scratch, uint8_t* to) const {
    const auto inner = static_cast<size_t>(view.inner);
    const auto number = static_cast<double>(view.size);
    double* means;
    if constexpr (std::is_floating_point_v<T>) {
      means = SumAlong(view, in, scratch);
    } else {
      means = Fold(view, in, 0.0, scratch.AllocateArray<double>(inner),
                   [](double a, T x, int64_t) { return a + static_cast<double>(x); });
    }
    for (size_t n = 0; n < inner; ++n) means[n] /= number;
    if (kind_ != Kind::kMean) {
      double* squares;
      if constexpr (std::is_floating_point_v<T>) {
        squares = SumAlong(view, in, scratch, means);
      } else {
        squares = Fold(view, in, 0.0, scratch.AllocateArray<double>(inner),
                       [means](double a, T x, int64_t n) {
                         const double distance = static_cast<double>(x) - means[n];
                         return a + distance * distance;
                       });
      }
      for (size_t n = 0; n < inner; ++n) means[n] = Spread(squares[n], number);
    }
    for (size_t n = 0; n < inner; ++n)
      Put(static_cast<Averaged<T>>(means[n]), to + n * sizeof(Averaged<T>));
  }

  // The variance or its root.
  double Spread(double squares, double number) const {
    const double variance = squares / std::max(number - ddof_, 0.0);
    return kind_ == Kind::kStd ? std::sqrt(variance) : variance;
  }

  const Kind kind_;
  const DType dtype_;
  const size_t result_bytes_;
  const int64_t axis_;
  const bool keeps_axes_;
  const double ddof_;
  const bool sets_shape_;
  const kernels::ExtremeCode take_;
};

template <Kind kKind>
absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& x = arguments[0].type;
  if (!VisitValue(x.dtype, [](auto) {})) {
    return WrongArgument("x", absl::StrCat("numbers, found ", TypeToString(x)));
  }
  int64_t axis = -1;
  if (arguments[1].given) {
    const auto given = ReadAxis(arguments[1], x);
    if (!given.ok()) return given.status();
    axis = static_cast<int64_t>(*given);
  }
  bool keeps_axes = false;
  double ddof = 0;
  if (auto status = ReadConstant(arguments[2], "keepdims", &keeps_axes); !status.ok())
    return status;
  if (arguments.size() > 3) {
    if (auto status = ReadConstant(arguments[3], "ddof", &ddof); !status.ok()) return status;
  }
  const bool empty = std::any_of(x.shape.begin(), x.shape.end(), [](int64_t s) { return s == 0; });
  if (empty && (kKind == Kind::kMin || kKind == Kind::kMax)) {
    return WrongArgument("x", absl::StrCat("elements, found ", TypeToString(x)));
  }
  BoundRowFunction bound;
  bound.type = {ResultType(kKind, x.dtype), Reduce::ShapeOf(x.shape, axis, keeps_axes)};
  bound.kernel = std::make_shared<Reduce>(kKind, x.dtype, axis, keeps_axes, ddof,
                                          !NumElements(bound.type.shape).has_value());
  bound.tensor_arguments = {0};
  bound.takes_all_axes = !arguments[1].given;
  return bound;
}

#define PENSTOCK_AXIS_MANUAL                                                                       \
  "axis: a negative constant, -1 is the last axis; left out, all values of an element are taken, " \
  "after `batch` all of the batch."                                                                \
  "\nkeepdims: whether the axis stays with a size of one, a constant.\n"

const RowFunctionRegistration kSum({
    .name = "sum",
    .signature = "sum(x, axis=None, keepdims=False)",
    .doc = "The sum along an axis (numpy.sum).\n"
           "\n"
           "x: numbers or flags. Integers and flags are added in 64 bits, where they "
           "wrap.\n" PENSTOCK_AXIS_MANUAL "\n"
           "float32 is added in float64 and rounded once: nearer to the truth than NumPy's.",
    .bind = Bind<Kind::kSum>,
});
const RowFunctionRegistration kProd({
    .name = "prod",
    .signature = "prod(x, axis=None, keepdims=False)",
    .doc = "The product along an axis (numpy.prod).\n"
           "\n"
           "x: numbers or flags. Integers are multiplied in 64 bits, where they "
           "wrap.\n" PENSTOCK_AXIS_MANUAL "\n"
           "float32 is multiplied in float64 and rounded once.",
    .bind = Bind<Kind::kProd>,
});
const RowFunctionRegistration kMean({
    .name = "mean",
    .signature = "mean(x, axis=None, keepdims=False)",
    .doc = "The mean along an axis (numpy.mean): float32 of float32, else float64.\n"
           "\n"
           "x: numbers or flags.\n" PENSTOCK_AXIS_MANUAL "\n"
           "Computed in float64 and rounded once. NaN of no values.",
    .bind = Bind<Kind::kMean>,
});
const RowFunctionRegistration kVar({
    .name = "var",
    .signature = "var(x, axis=None, keepdims=False, ddof=0)",
    .doc = "The variance along an axis (numpy.var): float32 of float32, else float64.\n"
           "\n"
           "x: numbers or flags.\n" PENSTOCK_AXIS_MANUAL
           "ddof: is taken from the number of values before it divides, a constant.\n"
           "\n"
           "Computed in float64, the mean first, and rounded once.",
    .bind = Bind<Kind::kVar>,
});
const RowFunctionRegistration kStd({
    .name = "std",
    .signature = "std(x, axis=None, keepdims=False, ddof=0)",
    .doc = "The square root of the variance along an axis (numpy.std).\n"
           "\n"
           "x: numbers or flags.\n" PENSTOCK_AXIS_MANUAL
           "ddof: is taken from the number of values before it divides, a constant.\n"
           "\n"
           "Computed in float64, the mean first, and rounded once.",
    .bind = Bind<Kind::kStd>,
});
const RowFunctionRegistration kMin({
    .name = "min",
    .signature = "min(x, axis=None, keepdims=False)",
    .doc =
        "The least value along an axis, or NaN if there is one (numpy.min).\n"
        "\n"
        "x: numbers or flags.\n" PENSTOCK_AXIS_MANUAL "\n"
        "An axis without elements is an error of its record. minimum(a, b) is the lesser of two.",
    .bind = Bind<Kind::kMin>,
});
const RowFunctionRegistration kMax({
    .name = "max",
    .signature = "max(x, axis=None, keepdims=False)",
    .doc =
        "The greatest value along an axis, or NaN if there is one (numpy.max).\n"
        "\n"
        "x: numbers or flags.\n" PENSTOCK_AXIS_MANUAL "\n"
        "An axis without elements is an error of its record. maximum(a, b) is the greater of two.",
    .bind = Bind<Kind::kMax>,
});
const RowFunctionRegistration kAny({
    .name = "any",
    .signature = "any(x, axis=None, keepdims=False)",
    .doc = "Whether one value along an axis is not zero (numpy.any).\n"
           "\n"
           "x: numbers or flags; NaN is not zero.\n" PENSTOCK_AXIS_MANUAL "\n"
           "False of no values.",
    .bind = Bind<Kind::kAny>,
});
const RowFunctionRegistration kAll({
    .name = "all",
    .signature = "all(x, axis=None, keepdims=False)",
    .doc = "Whether no value along an axis is zero (numpy.all).\n"
           "\n"
           "x: numbers or flags; NaN is not zero.\n" PENSTOCK_AXIS_MANUAL "\n"
           "True of no values.",
    .bind = Bind<Kind::kAll>,
});
#undef PENSTOCK_AXIS_MANUAL

}  // namespace
}  // namespace penstock::expr
