#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "server/expr/arguments.h"
#include "server/expr/axis.h"
#include "server/expr/each_string.h"
#include "server/expr/string_row.h"

namespace penstock::expr {
namespace {

// Of a string beside its bytes, as StopLook counts it.
constexpr uint64_t kStringWork = 32;

class ReduceJoin final : public RowKernel {
 public:
  // `axis`: nothing for all of them, in C order.
  ReduceJoin(std::optional<size_t> axis, bool keeps_axes, std::string separator, bool is_scalar,
             bool sets_shape)
      : axis_(axis),
        keeps_axes_(keeps_axes),
        separator_(std::move(separator)),
        is_scalar_(is_scalar),
        sets_shape_(sets_shape) {}

  static Shape ShapeOf(Shape shape, std::optional<size_t> axis, bool keeps_axes) {
    if (!axis) return keeps_axes ? Shape(shape.size(), 1) : Shape{};
    if (keeps_axes) {
      shape[*axis] = 1;
    } else {
      shape.erase(shape.begin() + static_cast<int64_t>(*axis));
    }
    return shape;
  }

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& in = arguments[0];
    const absl::Span<const absl::string_view> strings = StringsOf(in, scratch);
    const AxisView view =
        axis_ ? AxisView(in.shape, *axis_) : AxisView({static_cast<int64_t>(strings.size())}, 0);
    if (sets_shape_) out.SetShape(ShapeOf(in.shape, axis_, keeps_axes_));
    std::vector<std::string> joined;
    uint64_t bytes = 0;
    StopLook look;
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t n = 0; n < view.inner; ++n) {
        std::string& text = joined.emplace_back();
        for (int64_t i = 0; i < view.size; ++i) {
          const absl::string_view string =
              strings[static_cast<size_t>((o * view.size + i) * view.inner + n)];
          look.Did(string.size() + kStringWork);
          if (i > 0) text += separator_;
          AppendInPieces(&text, string);
          if (bytes + text.size() > kEachStringBytesMax) {
            return absl::ResourceExhaustedError(
                absl::StrCat("results larger than the limit: ", bytes + text.size(), " > ",
                             kEachStringBytesMax, " bytes"));
          }
        }
        bytes += text.size();
      }
    }
    const std::vector<absl::string_view> views(joined.begin(), joined.end());
    return PutStrings(views, is_scalar_, out);
  }

 private:
  const std::optional<size_t> axis_;
  const bool keeps_axes_;
  const std::string separator_;
  const bool is_scalar_;
  const bool sets_shape_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  bool keeps_axes = false;
  std::string separator;
  absl::Status status = FirstError({ReadStrings(arguments[0], "input"),
                                    ReadConstant(arguments[2], "keepdims", &keeps_axes),
                                    ReadConstant(arguments[3], "separator", &separator)});
  if (!status.ok()) return status;
  const TensorType& input = arguments[0].type;
  std::optional<size_t> axis;
  if (arguments[1].given) {
    const auto read = ReadAxis(arguments[1], input);
    if (!read.ok()) return read.status();
    axis = *read;
  }
  BoundRowFunction bound;
  bound.type = {DType::kString, ReduceJoin::ShapeOf(input.shape, axis, keeps_axes)};
  bound.tensor_arguments = {0};
  bound.takes_all_axes = !axis;
  bound.kernel =
      std::make_shared<ReduceJoin>(axis, keeps_axes, std::move(separator), bound.type.shape.empty(),
                                   HasUnknownSize(bound.type.shape));
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "reduce_join",
    .signature = "reduce_join(input, axis=None, keepdims=False, separator=\"\")",
    .doc =
        "The strings along an axis as one, as tf.strings.reduce_join joins them.\n"
        "\n"
        "input: a tensor of strings.\n"
        "axis: a negative constant, -1 is the last axis; without it all strings become one, in C "
        "order.\n"
        "keepdims: whether an axis of one element stays.\n"
        "separator: what comes between them, a constant.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
