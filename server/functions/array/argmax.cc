#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "base/stop_flag.h"
#include "server/expr/arguments.h"
#include "server/expr/axis.h"
#include "server/expr/number_types.h"

namespace penstock::expr {
namespace {

// The first of the greatest; NaN is greater than all numbers, as in NumPy.
template <typename T>
int64_t FirstGreatest(const T* in, int64_t size, int64_t step) {
  int64_t best = 0;
  InPieces(static_cast<size_t>(size), [&](size_t first, size_t some) {
    const auto end = static_cast<int64_t>(first + some);
    int64_t found = best;
    for (auto i = static_cast<int64_t>(first); i < end; ++i) {
      const T value = in[i * step], greatest = in[found * step];
      if (value > greatest || (value != value && greatest == greatest)) found = i;
    }
    best = found;
  });
  return best;
}

class Argmax final : public RowKernel {
 public:
  Argmax(DType dtype, size_t axis, bool sets_shape)
      : dtype_(dtype), axis_(axis), sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& in = arguments[0];
    const AxisView view(in.shape, axis_);
    if (view.size == 0) {
      return absl::DataLossError(
          absl::StrCat("argmax of an axis without elements: ", ShapeToString(in.shape)));
    }
    if (sets_shape_) {
      Shape shape = in.shape;
      shape.erase(shape.begin() + static_cast<int64_t>(axis_));
      out.SetShape(shape);
    }
    VisitNumber(dtype_, [&](auto type) {
      using T = decltype(type);
      const auto* const data = reinterpret_cast<const T*>(in.data);
      auto* to = reinterpret_cast<int64_t*>(
          out.Reserve(static_cast<size_t>(view.outer * view.inner) * sizeof(int64_t)));
      StopLook look;
      for (int64_t o = 0; o < view.outer; ++o) {
        for (int64_t n = 0; n < view.inner; ++n) {
          look.Did(static_cast<uint64_t>(view.size) * sizeof(T));
          const int64_t best =
              FirstGreatest(data + o * view.size * view.inner + n, view.size, view.inner);
          std::memcpy(to++, &best, sizeof(best));
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

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& x = arguments[0].type;
  const auto axis = ReadAxisOfNumbers(x, arguments[1]);
  if (!axis.ok()) return axis.status();
  if (x.shape[*axis] == 0) return WrongArgument("x", "an axis with elements");
  BoundRowFunction bound;
  bound.type = {DType::kInt64, x.shape};
  bound.type.shape.erase(bound.type.shape.begin() + static_cast<int64_t>(*axis));
  bound.kernel =
      std::make_shared<Argmax>(x.dtype, *axis, !NumElements(bound.type.shape).has_value());
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "argmax",
    .signature = "argmax(x, axis=-1)",
    .doc = "Where along an axis the first of the greatest values is, as int64 without that axis "
           "(numpy.argmax).\n"
           "\n"
           "x: numbers with one axis at least.\n"
           "axis: a negative constant, -1 is the last axis.\n"
           "\n"
           "NaN counts as the greatest. An axis without elements is an error of its record.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
