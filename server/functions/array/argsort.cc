#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <type_traits>

#include "base/in_pieces.h"
#include "base/stop_flag.h"
#include "server/expr/axis.h"
#include "server/expr/number_types.h"
#include "server/expr/string_row.h"

namespace penstock::expr {
namespace {

// As StopLook counts them.
constexpr uint64_t kComparisonWork = 8;
constexpr uint64_t kLineWork = 16;

// NaN is greater than every number.
template <typename T>
bool Less(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a) return false;
    if (b != b) return true;
  }
  return a < b;
}

class Argsort final : public RowKernel {
 public:
  Argsort(DType dtype, size_t axis, bool sets_shape)
      : dtype_(dtype), axis_(axis), sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& in = arguments[0];
    if (sets_shape_) out.SetShape(in.shape);
    const AxisView view(in.shape, axis_);
    const auto count = static_cast<size_t>(*NumElements(in.shape));
    uint8_t* const places = out.Reserve(count * sizeof(int64_t));
    if (dtype_ == DType::kString) {
      Sort(view, StringsOf(in, scratch).data(), scratch, places);
    } else {
      VisitNumber(dtype_, [&](auto type) {
        using T = decltype(type);
        auto* const values = scratch.AllocateArray<T>(count);
        CopyInPieces(values, in.data, count * sizeof(T));
        Sort(view, values, scratch, places);
      });
    }
    out.Commit();
    return absl::OkStatus();
  }

 private:
  template <typename T>
  static void Sort(const AxisView& view, const T* values, Arena& scratch, uint8_t* places) {
    StopLook look;
    auto* const order = scratch.AllocateArray<int64_t>(static_cast<size_t>(view.size));
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t n = 0; n < view.inner; ++n) {
        const int64_t first = o * view.size * view.inner + n;
        look.Did(kLineWork + static_cast<uint64_t>(view.size));
        InPieces(static_cast<size_t>(view.size), [&](size_t begin, size_t some) {
          std::iota(order + begin, order + begin + some, static_cast<int64_t>(begin));
        });
        std::stable_sort(order, order + view.size, [&](int64_t a, int64_t b) {
          look.Did(kComparisonWork);
          return Less(values[first + a * view.inner], values[first + b * view.inner]);
        });
        InPieces(static_cast<size_t>(view.size), [&](size_t begin, size_t some) {
          for (size_t i = begin; i < begin + some; ++i) {
            const size_t at = static_cast<size_t>(first) + i * static_cast<size_t>(view.inner);
            std::memcpy(places + at * sizeof(int64_t), order + i, sizeof(int64_t));
          }
        });
      }
    }
  }

  const DType dtype_;
  const size_t axis_;
  const bool sets_shape_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& x = arguments[0].type;
  const auto axis =
      x.dtype == DType::kString ? ReadAxis(arguments[1], x) : ReadAxisOfNumbers(x, arguments[1]);
  if (!axis.ok()) return axis.status();
  BoundRowFunction bound;
  bound.type = {DType::kInt64, x.shape};
  bound.kernel = std::make_shared<Argsort>(x.dtype, *axis, HasUnknownSize(x.shape));
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "argsort",
    .signature = "argsort(x, axis=-1)",
    .doc = "Where the values along an axis stand in rising order (numpy.argsort), int64: "
           "take(x, argsort(x)) is sort(x).\n"
           "\n"
           "x: numbers or strings with one axis at least.\n"
           "axis: a negative constant, -1 is the last axis.\n"
           "\n"
           "NaN comes last. Of equal values the one in front comes first, as of NumPy with "
           "kind=\"stable\". Strings are ordered by their bytes.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
