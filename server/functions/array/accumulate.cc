// What becomes of all values up to each along an axis: sums, products, extremes.
#include <memory>
#include <type_traits>

#include "base/in_pieces.h"
#include "base/stop_flag.h"
#include "server/expr/axis.h"
#include "server/expr/number_types.h"

namespace penstock::expr {
namespace {

// What NumPy adds and multiplies in: integers in 64 bits, where they wrap.
template <typename T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;
DType WideType(DType dtype) {
  if (IsFloating(dtype)) return dtype;
  return IsSigned(dtype) ? DType::kInt64 : DType::kUint64;
}

struct Added {
  template <typename T>
  using Result = Wide<T>;
  static DType TypeOf(DType dtype) { return WideType(dtype); }
  template <typename T>
  T operator()(T before, T value) const {
    return before + value;
  }
};
struct Multiplied {
  template <typename T>
  using Result = Wide<T>;
  static DType TypeOf(DType dtype) { return WideType(dtype); }
  template <typename T>
  T operator()(T before, T value) const {
    return before * value;
  }
};
// As numpy.maximum and numpy.minimum choose: what is no number stays, of equal values the first.
struct Greater {
  template <typename T>
  using Result = T;
  static DType TypeOf(DType dtype) { return dtype; }
  template <typename T>
  T operator()(T before, T value) const {
    return before >= value || before != before ? before : value;
  }
};
struct Less {
  template <typename T>
  using Result = T;
  static DType TypeOf(DType dtype) { return dtype; }
  template <typename T>
  T operator()(T before, T value) const {
    return before <= value || before != before ? before : value;
  }
};

// The last one stays in a register: a load of what was just stored takes longer than the addition.
template <typename Operation, typename T, typename R>
void Along(const T* in, int64_t size, R* to) {
  if (size == 0) return;
  R last = to[0] = static_cast<R>(in[0]);
  InPieces(static_cast<size_t>(size - 1), [&](size_t first, size_t some) {
    const T* const from = in + 1 + first;
    R* const out = to + 1 + first;
    R sum = last;
    for (size_t i = 0; i < some; ++i) out[i] = sum = Operation()(sum, static_cast<R>(from[i]));
    last = sum;
  });
}

template <typename Operation, typename T, typename R>
void ByRows(const T* in, int64_t size, int64_t inner, R* to) {
  StopLook look;
  for (int64_t i = 0; i < size; ++i, in += inner, to += inner) {
    look.Did(static_cast<uint64_t>(inner) * sizeof(R));
    for (int64_t n = 0; n < inner; ++n) {
      const auto value = static_cast<R>(in[n]);
      to[n] = i == 0 ? value : Operation()(to[n - inner], value);
    }
  }
}

template <typename Operation>
class Accumulate final : public RowKernel {
 public:
  Accumulate(DType dtype, size_t axis, bool sets_shape)
      : dtype_(dtype), axis_(axis), sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& in = arguments[0];
    if (sets_shape_) out.SetShape(in.shape);
    const AxisView view(in.shape, axis_);
    const int64_t count = view.outer * view.size * view.inner;
    VisitNumber(dtype_, [&](auto type) {
      using T = decltype(type);
      using R = typename Operation::template Result<T>;
      const auto* const data = reinterpret_cast<const T*>(in.data);
      auto* const to = reinterpret_cast<R*>(out.Reserve(static_cast<size_t>(count) * sizeof(R)));
      StopLook look;
      for (int64_t o = 0; o < view.outer; ++o) {
        look.Did(static_cast<uint64_t>(view.size * view.inner) * sizeof(R));
        const int64_t start = o * view.size * view.inner;
        if (view.inner == 1) {
          Along<Operation>(data + start, view.size, to + start);
        } else {
          ByRows<Operation>(data + start, view.size, view.inner, to + start);
        }
      }
      out.Commit();
    });
    return absl::OkStatus();
  }

 private:
  const DType dtype_;
  const size_t axis_;
  const bool sets_shape_;
};

template <typename Operation>
absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& x = arguments[0].type;
  const auto axis = ReadAxisOfNumbers(x, arguments[1]);
  if (!axis.ok()) return axis.status();
  BoundRowFunction bound;
  bound.type = {Operation::TypeOf(x.dtype), x.shape};
  bound.kernel =
      std::make_shared<Accumulate<Operation>>(x.dtype, *axis, !NumElements(x.shape).has_value());
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kCumsum({
    .name = "cumsum",
    .signature = "cumsum(x, axis=-1)",
    .doc =
        "The sums of all values up to each along an axis (numpy.cumsum).\n"
        "\n"
        "x: numbers with one axis at least. Integers are added in 64 bits, which is the result's "
        "dtype; they wrap.\n"
        "axis: a negative constant, -1 is the last axis.\n"
        "\n"
        "Floats are added one after the other: the bits of NumPy and TensorFlow.",
    .bind = Bind<Added>,
});

const RowFunctionRegistration kCumprod({
    .name = "cumprod",
    .signature = "cumprod(x, axis=-1)",
    .doc = "The products of all values up to each along an axis (numpy.cumprod, "
           "tf.math.cumprod).\n"
           "\n"
           "x: numbers with one axis at least. Integers are multiplied in 64 bits, which is the "
           "result's dtype; they wrap.\n"
           "axis: a negative constant, -1 is the last axis.\n"
           "\n"
           "Floats are multiplied one after the other: the bits of NumPy and TensorFlow.",
    .bind = Bind<Multiplied>,
});

const RowFunctionRegistration kMaximum({
    .name = "maximum_accumulate",
    .signature = "maximum_accumulate(x, axis=-1)",
    .doc = "The greatest of all values up to each along an axis (numpy.maximum.accumulate).\n"
           "\n"
           "x: numbers with one axis at least; the result has its type.\n"
           "axis: a negative constant, -1 is the last axis.\n"
           "\n"
           "After a NaN all are NaN, as in NumPy.",
    .bind = Bind<Greater>,
});

const RowFunctionRegistration kMinimum({
    .name = "minimum_accumulate",
    .signature = "minimum_accumulate(x, axis=-1)",
    .doc = "The least of all values up to each along an axis (numpy.minimum.accumulate).\n"
           "\n"
           "x: numbers with one axis at least; the result has its type.\n"
           "axis: a negative constant, -1 is the last axis.\n"
           "\n"
           "After a NaN all are NaN, as in NumPy.",
    .bind = Bind<Less>,
});

}  // namespace
}  // namespace penstock::expr
