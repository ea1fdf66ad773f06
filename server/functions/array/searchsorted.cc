#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "server/expr/arguments.h"
#include "server/expr/number_types.h"

namespace penstock::expr {
namespace {

// What two dtypes are compared in, which is what NumPy promotes them to or holds as much.
template <typename A, typename B>
using Common = std::conditional_t<
    std::is_floating_point_v<A> || std::is_floating_point_v<B>, double,
    std::conditional_t<
        std::is_same_v<A, uint64_t> && std::is_same_v<B, uint64_t>, uint64_t,
        std::conditional_t<std::is_same_v<A, uint64_t> || std::is_same_v<B, uint64_t>, double,
                           int64_t>>>;

// NaN stands behind all numbers.
template <typename T>
bool Less(T a, T b) {
  return a < b || (b != b && a == a);
}

// How many of `sorted` stand in front of the value: those below it, and where `right`, those that
// equal it too.
template <typename T, typename Sorted>
int64_t Place(const Sorted* sorted, int64_t size, T value, bool right) {
  int64_t low = 0, high = size;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const auto at = static_cast<T>(sorted[middle]);
    const bool in_front = right ? !Less(value, at) : Less(at, value);
    (in_front ? low : high) = in_front ? middle + 1 : middle;
  }
  return low;
}

// Some milliseconds, of a large axis.
constexpr int64_t kValuesBetweenLooks = 1 << 14;

class Searchsorted final : public RowKernel {
 public:
  Searchsorted(DType sorted, DType values, bool right, bool sets_shape)
      : sorted_(sorted), values_(values), right_(right), sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena&, RowOutput& out) const override {
    const RowValue& values = arguments[1];
    if (sets_shape_) out.SetShape(values.shape);
    const int64_t count = *NumElements(values.shape);
    uint8_t* const to = out.Reserve(static_cast<size_t>(count) * sizeof(int64_t));
    VisitNumber(sorted_, [&](auto sorted_type) {
      const auto* const sorted = reinterpret_cast<const decltype(sorted_type)*>(arguments[0].data);
      VisitNumber(values_, [&](auto value_type) {
        using T = Common<decltype(sorted_type), decltype(value_type)>;
        const auto* const from = reinterpret_cast<const decltype(value_type)*>(values.data);
        for (int64_t i = 0; i < count; ++i) {
          if (i % kValuesBetweenLooks == 0) CheckStop();
          const int64_t place =
              Place(sorted, arguments[0].shape[0], static_cast<T>(from[i]), right_);
          std::memcpy(to + static_cast<size_t>(i) * sizeof(place), &place, sizeof(place));
        }
      });
    });
    out.Commit();
    return absl::OkStatus();
  }

 private:
  const DType sorted_;
  const DType values_;
  const bool right_;
  const bool sets_shape_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& sorted = arguments[0].type;
  if (!VisitNumber(sorted.dtype, [](auto) {}) || sorted.shape.size() != 1) {
    return WrongArgument("a",
                         absl::StrCat("sorted numbers of one axis, found ", TypeToString(sorted)));
  }
  const TensorType& values = arguments[1].type;
  if (!VisitNumber(values.dtype, [](auto) {})) {
    return WrongArgument("v", absl::StrCat("numbers, found ", TypeToString(values)));
  }
  std::string side = "left";
  if (const absl::Status status = ReadConstant(arguments[2], "side", &side); !status.ok())
    return status;
  if (side != "left" && side != "right") return WrongArgument("side", "\"left\" or \"right\"");
  BoundRowFunction bound;
  bound.type = {DType::kInt64, values.shape};
  bound.kernel = std::make_shared<Searchsorted>(sorted.dtype, values.dtype, side == "right",
                                                HasUnknownSize(values.shape));
  bound.tensor_arguments = {0, 1};
  bound.takes_all_axes = true;
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "searchsorted",
    .signature = "searchsorted(a, v, side=\"left\")",
    .doc = "Between which of sorted numbers each value lies (numpy.searchsorted, tf.searchsorted): "
           "how many of them stand before it, int64 "
           "of the shape of v. Boundaries make buckets of numbers so.\n"
           "\n"
           "a: numbers in rising order, of one axis: a constant, or a tensor of the element, whose "
           "order is not looked at.\n"
           "v: numbers of any shape.\n"
           "side: \"left\" counts those below the value, \"right\" those that equal it too.\n"
           "\n"
           "NaN stands after all numbers. After batch a is a constant, or a whole batch.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
