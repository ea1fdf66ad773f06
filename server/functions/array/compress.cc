#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "base/stop_flag.h"
#include "server/expr/arguments.h"
#include "server/expr/axis.h"

namespace penstock::expr {
namespace {

// Of a place beside its bytes, as StopLook counts it.
constexpr uint64_t kPlaceWork = 16;

class Compress final : public RowKernel {
 public:
  Compress(size_t axis, size_t element_bytes) : axis_(axis), element_bytes_(element_bytes) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& flags = arguments[0];
    const RowValue& in = arguments[1];
    const AxisView view(in.shape, axis_);
    if (flags.shape[0] != view.size) {
      return absl::DataLossError(absl::StrCat("compress: ", flags.shape[0],
                                              " flags for an axis of ", view.size, ": ",
                                              ShapeToString(in.shape)));
    }
    const size_t bytes = static_cast<size_t>(view.inner) * element_bytes_;
    auto* const kept = scratch.AllocateArray<size_t>(static_cast<size_t>(view.size));
    size_t count = 0;
    InPieces(static_cast<size_t>(view.size), [&](size_t first, size_t some) {
      size_t so_far = count;
      for (size_t i = first; i < first + some; ++i) {
        kept[so_far] = i * bytes;
        so_far += flags.data[i] != 0;
      }
      count = so_far;
    });
    Shape shape = in.shape;
    shape[axis_] = static_cast<int64_t>(count);
    out.SetShape(shape);
    uint8_t* to = out.Reserve(static_cast<size_t>(view.outer) * count * bytes);
    StopLook look;
    for (int64_t o = 0; o < view.outer && bytes > 0; ++o) {
      look.Did(kPlaceWork);
      const uint8_t* const from = in.data + static_cast<size_t>(o * view.size) * bytes;
      const size_t at_once = std::max<size_t>(StopLook::kWork / (bytes + kPlaceWork), 1);
      for (size_t first = 0; first < count; first += at_once) {
        const size_t some = std::min(at_once, count - first);
        look.Did(some * (bytes + kPlaceWork));
        for (size_t i = first; i < first + some; ++i, to += bytes)
          std::memcpy(to, from + kept[i], bytes);
      }
    }
    out.Commit();
    return absl::OkStatus();
  }

 private:
  const size_t axis_;
  const size_t element_bytes_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& condition = arguments[0].type;
  if (condition.dtype != DType::kBool || condition.shape.size() != 1) {
    return WrongArgument("condition",
                         absl::StrCat("flags of one axis, found ", TypeToString(condition)));
  }
  const TensorType& x = arguments[1].type;
  if (x.dtype == DType::kInvalid || x.dtype == DType::kString || x.shape.empty()) {
    return WrongArgument(
        "x", absl::StrCat("numbers or flags of one axis at least, found ", TypeToString(x)));
  }
  const auto axis = ReadAxis(arguments[2], x);
  if (!axis.ok()) return axis.status();
  const int64_t flags = condition.shape[0], size = x.shape[*axis];
  if (flags != size && flags != kUnknownSize && size != kUnknownSize) {
    return WrongArgument("condition", absl::StrCat("a flag for each of ", size, ", found ", flags));
  }
  BoundRowFunction bound;
  bound.type = x;
  bound.type.shape[*axis] = kUnknownSize;
  bound.kernel = std::make_shared<Compress>(*axis, DTypeSize(x.dtype));
  bound.tensor_arguments = {0, 1};
  bound.takes_all_axes = true;
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "compress",
    .signature = "compress(condition, x, axis=-1)",
    .doc = "The elements of an axis whose flag is set (numpy.compress, tf.boolean_mask): "
           "compress(x > 0, x).\n"
           "\n"
           "condition: flags, one for each element of the axis.\n"
           "x: numbers or flags of one axis at least.\n"
           "axis: a negative constant, -1 is the last axis.\n"
           "\n"
           "How many there are only the data tells; another number of flags than of elements is an "
           "error of its record.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
