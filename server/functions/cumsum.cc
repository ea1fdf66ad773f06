#include <cstring>
#include <functional>
#include <memory>
#include <type_traits>

#include "server/expr/axis.h"
#include "server/expr/number_types.h"

namespace penstock::expr {
namespace {

// What NumPy adds in: integers in 64 bits, where they wrap.
DType SumType(DType dtype) {
  if (IsFloating(dtype)) return dtype;
  return IsSigned(dtype) ? DType::kInt64 : DType::kUint64;
}

template <typename T>
using Sum = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;

// The last sum stays in a register: a load of what was just stored takes longer than the addition.
template <typename Operation, typename T>
void Along(const T* in, int64_t size, Sum<T>* to) {
  if (size == 0) return;
  Sum<T> sum = to[0] = static_cast<Sum<T>>(in[0]);
  for (int64_t i = 1; i < size; ++i) to[i] = sum = Operation()(sum, static_cast<Sum<T>>(in[i]));
}

template <typename Operation, typename T>
void ByRows(const T* in, int64_t size, int64_t inner, Sum<T>* to) {
  for (int64_t i = 0; i < size; ++i, in += inner, to += inner) {
    for (int64_t n = 0; n < inner; ++n) {
      const auto value = static_cast<Sum<T>>(in[n]);
      to[n] = i == 0 ? value : Operation()(to[n - inner], value);
    }
  }
}

// Operation: std::plus<> or std::multiplies<>.
template <typename Operation>
class Cumulative final : public RowKernel {
 public:
  Cumulative(DType dtype, size_t axis, bool sets_shape)
      : dtype_(dtype), axis_(axis), sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& in = arguments[0];
    if (sets_shape_) out.SetShape(in.shape);
    const AxisView view(in.shape, axis_);
    const int64_t count = view.outer * view.size * view.inner;
    VisitNumber(dtype_, [&](auto type) {
      using T = decltype(type);
      const auto* const data = reinterpret_cast<const T*>(in.data);
      auto* const to =
          reinterpret_cast<Sum<T>*>(out.Reserve(static_cast<size_t>(count) * sizeof(Sum<T>)));
      for (int64_t o = 0; o < view.outer; ++o) {
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
  bound.type = {SumType(x.dtype), x.shape};
  bound.kernel =
      std::make_shared<Cumulative<Operation>>(x.dtype, *axis, !NumElements(x.shape).has_value());
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
    .bind = Bind<std::plus<>>,
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
    .bind = Bind<std::multiplies<>>,
});

}  // namespace
}  // namespace penstock::expr
