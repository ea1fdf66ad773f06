#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "server/expr/arguments.h"
#include "server/expr/axis.h"
#include "server/expr/data_integers.h"
#include "server/expr/string_row.h"

namespace penstock::expr {
namespace {

constexpr int64_t kShiftMax = int64_t{1} << 62;

// Of a stretch beside its bytes, as StopLook counts it.
constexpr uint64_t kStretchWork = 16;

class Roll final : public RowKernel {
 public:
  Roll(const TensorType& type, size_t axis, DataIntegers shift)
      : element_bytes_(DTypeSize(type.dtype)),
        is_string_(type.dtype == DType::kString),
        axis_(axis),
        sets_shape_(HasUnknownSize(type.shape)),
        shift_(std::move(shift)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    IntegersRead shift;
    if (absl::Status status = shift_.Read(arguments.subspan(1), &shift); !status.ok())
      return status;
    const RowValue& in = arguments[0];
    if (sets_shape_) out.SetShape(in.shape);
    const AxisView view(in.shape, axis_);
    const int64_t by = view.size == 0 ? 0 : (shift[0] % view.size + view.size) % view.size;
    if (is_string_) {
      const absl::Span<const absl::string_view> from = StringsOf(in, scratch);
      auto* const to = scratch.AllocateArray<absl::string_view>(from.size());
      Rotate(view, by, from.data(), static_cast<size_t>(view.inner), to);
      return PutStrings({to, from.size()}, /*is_scalar=*/false, out);
    }
    Rotate(view, by, in.data, static_cast<size_t>(view.inner) * element_bytes_,
           out.Reserve(in.bytes));
    out.Commit();
    return absl::OkStatus();
  }

 private:
  // `inner`: values of T in one place of the axis.
  template <typename T>
  static void Rotate(const AxisView& view, int64_t by, const T* from, size_t inner, T* to) {
    const size_t all = static_cast<size_t>(view.size) * inner;
    const size_t last = static_cast<size_t>(by) * inner;
    StopLook look;
    const auto copy = [&](const T* values, size_t count) {
      InPieces(count,
               [&](size_t first, size_t some) { std::copy_n(values + first, some, to + first); });
      to += count;
    };
    for (int64_t o = 0; o < view.outer; ++o, from += all) {
      look.Did(all * sizeof(T) + kStretchWork);
      copy(from + (all - last), last);
      copy(from, all - last);
    }
  }

  const size_t element_bytes_;
  const bool is_string_;
  const size_t axis_;
  const bool sets_shape_;
  const DataIntegers shift_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& x = arguments[0].type;
  if (x.dtype == DType::kInvalid) return WrongArgument("x", "a tensor, found a list or a text");
  const auto axis = ReadAxis(arguments[2], x);
  if (!axis.ok()) return axis.status();
  DataIntegers shift;
  if (absl::Status status = shift.Add(arguments, 1, "shift", -kShiftMax, kShiftMax); !status.ok())
    return status;
  BoundRowFunction bound;
  bound.type = x;
  bound.tensor_arguments = {0};
  bound.tensor_arguments.insert(bound.tensor_arguments.end(), shift.positions().begin(),
                                shift.positions().end());
  bound.kernel = std::make_shared<Roll>(x, *axis, std::move(shift));
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "roll",
    .signature = "roll(x, shift, axis=-1)",
    .doc = "The elements of an axis, each so many places further on; those at the end come to the "
           "beginning (numpy.roll, tf.roll).\n"
           "\n"
           "x: a tensor of one axis at least.\n"
           "shift: how many places, a constant or an integer of the data; a negative one moves to "
           "the front.\n"
           "axis: a negative constant, -1 is the last axis.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
