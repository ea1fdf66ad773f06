// The greatest, and the least, of all values up to each along an axis.
#include <memory>

#include "server/expr/axis.h"
#include "server/expr/number_types.h"

namespace penstock::expr {
namespace {

// As numpy.maximum and numpy.minimum choose: what is no number stays, of equal values the first.
struct Greater {
  template <typename T>
  T operator()(T before, T value) const {
    return before >= value || before != before ? before : value;
  }
};
struct Less {
  template <typename T>
  T operator()(T before, T value) const {
    return before <= value || before != before ? before : value;
  }
};

// The last one stays in a register, as in cumsum.
template <typename Choice, typename T>
void Along(const T* in, int64_t size, T* to) {
  if (size == 0) return;
  T chosen = to[0] = in[0];
  for (int64_t i = 1; i < size; ++i) to[i] = chosen = Choice()(chosen, in[i]);
}

template <typename Choice, typename T>
void ByRows(const T* in, int64_t size, int64_t inner, T* to) {
  for (int64_t i = 0; i < size; ++i, in += inner, to += inner) {
    for (int64_t n = 0; n < inner; ++n) to[n] = i == 0 ? in[n] : Choice()(to[n - inner], in[n]);
  }
}

template <typename Choice>
class Accumulate final : public RowKernel {
 public:
  Accumulate(DType dtype, size_t axis, bool sets_shape)
      : dtype_(dtype), axis_(axis), sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& in = arguments[0];
    if (sets_shape_) out.SetShape(in.shape);
    const AxisView view(in.shape, axis_);
    VisitNumber(dtype_, [&](auto type) {
      using T = decltype(type);
      const auto* const data = reinterpret_cast<const T*>(in.data);
      auto* const to = reinterpret_cast<T*>(out.Reserve(in.bytes));
      for (int64_t o = 0; o < view.outer; ++o) {
        const int64_t start = o * view.size * view.inner;
        if (view.inner == 1) {
          Along<Choice>(data + start, view.size, to + start);
        } else {
          ByRows<Choice>(data + start, view.size, view.inner, to + start);
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

template <typename Choice>
absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& x = arguments[0].type;
  const auto axis = ReadAxisOfNumbers(x, arguments[1]);
  if (!axis.ok()) return axis.status();
  BoundRowFunction bound;
  bound.type = x;
  bound.kernel =
      std::make_shared<Accumulate<Choice>>(x.dtype, *axis, !NumElements(x.shape).has_value());
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kMaximum({
    .name = "maximum_accumulate",
    .signature = "maximum_accumulate(x, axis=-1)",
    .doc = "The greatest of all values up to each along an axis (numpy.maximum.accumulate).\n"
           "\n"
           "x: numbers with one axis at least; the result has its type.\n"
           "axis: a negative constant, -1 is the last axis.\n"
           "\n"
           "Behind a NaN all are NaN, as in NumPy.",
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
           "Behind a NaN all are NaN, as in NumPy.",
    .bind = Bind<Less>,
});

}  // namespace
}  // namespace penstock::expr
