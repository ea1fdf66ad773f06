#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <type_traits>

#include "base/in_pieces.h"
#include "base/stop_flag.h"
#include "server/expr/axis.h"
#include "server/expr/number_types.h"
#include "server/expr/string_row.h"

namespace penstock::expr {
namespace {

// A sort of so many looks for a stop meanwhile; one of fewer is over soon.
constexpr size_t kStoppedFrom = size_t{1} << 20;
// As StopLook counts them.
constexpr uint64_t kComparisonWork = 8;
constexpr uint64_t kLineWork = 16;

// NaN is greater than every number.
template <typename T>
bool Less(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a) return false;
    if (b != b) return true;
  }
  return a < b;
}

class Sort final : public RowKernel {
 public:
  Sort(DType dtype, size_t axis, bool sets_shape)
      : dtype_(dtype), axis_(axis), sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& in = arguments[0];
    if (sets_shape_) out.SetShape(in.shape);
    const AxisView view(in.shape, axis_);
    uint8_t* const bytes = out.Reserve(in.bytes);
    StopLook look;
    VisitNumber(dtype_, [&](auto type) {
      using T = decltype(type);
      const auto size = static_cast<size_t>(view.size);
      auto* const values = scratch.AllocateArray<T>(size);
      for (int64_t o = 0; o < view.outer; ++o) {
        for (int64_t n = 0; n < view.inner; ++n) {
          const size_t first = static_cast<size_t>(o * view.size * view.inner + n) * sizeof(T);
          const size_t step = static_cast<size_t>(view.inner) * sizeof(T);
          // Lines that are sorted without a look are many, or each is short.
          look.Did(size < kStoppedFrom ? kLineWork + size * kComparisonWork * std::bit_width(size)
                                       : kLineWork + size);
          InPieces(size, [&](size_t begin, size_t some) {
            for (size_t i = begin; i < begin + some; ++i)
              std::memcpy(values + i, in.data + first + i * step, sizeof(T));
          });
          if (size < kStoppedFrom) {
            std::stable_sort(values, values + size, Less<T>);
          } else {
            std::stable_sort(values, values + size, [&](const T& a, const T& b) {
              look.Did(kComparisonWork);
              return Less(a, b);
            });
          }
          InPieces(size, [&](size_t begin, size_t some) {
            for (size_t i = begin; i < begin + some; ++i)
              std::memcpy(bytes + first + i * step, values + i, sizeof(T));
          });
        }
      }
    });
    out.Commit();
    return absl::OkStatus();
  }

 private:
  const DType dtype_;
  const size_t axis_;
  const bool sets_shape_;
};

class SortStrings final : public RowKernel {
 public:
  SortStrings(size_t axis, bool sets_shape) : axis_(axis), sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& in = arguments[0];
    if (sets_shape_) out.SetShape(in.shape);
    const AxisView view(in.shape, axis_);
    StopLook look;
    const absl::Span<const absl::string_view> strings = StringsOf(in, scratch);
    auto* const sorted = scratch.AllocateArray<absl::string_view>(strings.size());
    auto* const along = scratch.AllocateArray<absl::string_view>(static_cast<size_t>(view.size));
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t n = 0; n < view.inner; ++n) {
        const int64_t first = o * view.size * view.inner + n;
        look.Did(kLineWork + static_cast<uint64_t>(view.size));
        InPieces(static_cast<size_t>(view.size), [&](size_t begin, size_t some) {
          for (size_t i = begin; i < begin + some; ++i)
            along[i] = strings[static_cast<size_t>(first) + i * static_cast<size_t>(view.inner)];
        });
        std::sort(along, along + view.size, [&](absl::string_view a, absl::string_view b) {
          look.Did(kComparisonWork);
          return a < b;
        });
        InPieces(static_cast<size_t>(view.size), [&](size_t begin, size_t some) {
          for (size_t i = begin; i < begin + some; ++i)
            sorted[static_cast<size_t>(first) + i * static_cast<size_t>(view.inner)] = along[i];
        });
      }
    }
    return PutStrings({sorted, strings.size()}, /*is_scalar=*/false, out);
  }

 private:
  const size_t axis_;
  const bool sets_shape_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& x = arguments[0].type;
  const bool of_strings = x.dtype == DType::kString;
  const auto axis = of_strings ? ReadAxis(arguments[1], x) : ReadAxisOfNumbers(x, arguments[1]);
  if (!axis.ok()) return axis.status();
  BoundRowFunction bound;
  bound.type = x;
  if (of_strings) {
    bound.kernel = std::make_shared<SortStrings>(*axis, HasUnknownSize(x.shape));
  } else {
    bound.kernel = std::make_shared<Sort>(x.dtype, *axis, !NumElements(x.shape).has_value());
  }
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "sort",
    .signature = "sort(x, axis=-1)",
    .doc = "The values along an axis in rising order (numpy.sort).\n"
           "\n"
           "x: numbers or strings with one axis at least; the result has its dtype.\n"
           "axis: a negative constant, -1 is the last axis.\n"
           "\n"
           "NaN comes last. Equal values, such as 0.0 and -0.0, keep their order. Strings are "
           "ordered by their bytes.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
