#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "base/row_shape.h"
#include "server/expr/arguments.h"
#include "server/expr/broadcast.h"
#include "server/expr/each_string.h"
#include "server/expr/number_types.h"
#include "server/expr/string_row.h"

namespace penstock::expr {
namespace {

class StringWhere final : public RowKernel {
 public:
  StringWhere(DType condition, std::optional<std::string> x, std::optional<std::string> y,
              const Shape& shape)
      : condition_(condition),
        x_(std::move(x)),
        y_(std::move(y)),
        is_scalar_(shape.empty()),
        sets_shape_(HasUnknownAxes(shape)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& condition = arguments[0];
    std::optional<Shape> shape = condition.shape;
    size_t next = 1;
    absl::string_view constants[2];
    Shape shapes[2];
    absl::Span<const absl::string_view> strings[2];
    const std::optional<std::string>* const given[2] = {&x_, &y_};
    for (int side = 0; side < 2; ++side) {
      if (*given[side]) {
        constants[side] = **given[side];
        strings[side] = {&constants[side], 1};
        continue;
      }
      const RowValue& value = arguments[next++];
      shapes[side] = value.shape;
      strings[side] = StringsOf(value, scratch);
      const auto joined = BroadcastShapes(*shape, value.shape);
      if (!joined) {
        return absl::DataLossError(absl::StrCat("shapes do not broadcast: ", ShapeToString(*shape),
                                                " and ", ShapeToString(value.shape)));
      }
      shape = joined;
    }
    const auto elements = CountElements(*shape);
    if (!elements.ok()) return elements.status();
    const auto count = static_cast<size_t>(*elements);
    auto* const places = scratch.AllocateArray<int64_t>(count);
    auto* const chosen = scratch.AllocateArray<absl::string_view>(count);
    auto* const flags = scratch.AllocateArray<bool>(count);
    BroadcastPlaces(condition.shape, *shape, places);
    InPieces(count, [&](size_t first, size_t some) {
      for (size_t i = first; i < first + some; ++i) flags[i] = IsTrue(condition, places[i]);
    });
    for (int side = 0; side < 2; ++side) {
      BroadcastPlaces(shapes[side], *shape, places);
      InPieces(count, [&](size_t first, size_t some) {
        for (size_t i = first; i < first + some; ++i)
          if (flags[i] == (side == 0)) chosen[i] = strings[side][static_cast<size_t>(places[i])];
      });
    }
    if (sets_shape_) out.SetShape(*shape);
    return PutStrings({chosen, count}, is_scalar_, out);
  }

 private:
  bool IsTrue(const RowValue& condition, int64_t place) const {
    bool is_true = condition_ == DType::kBool && condition.data[place] != 0;
    VisitNumber(condition_, [&](auto type) {
      using T = decltype(type);
      T value;
      std::memcpy(&value, condition.data + static_cast<size_t>(place) * sizeof(T), sizeof(T));
      is_true = value != T{};
    });
    return is_true;
  }

  const DType condition_;
  const std::optional<std::string> x_, y_;  // constants
  const bool is_scalar_;
  const bool sets_shape_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& condition = arguments[0].type;
  if (condition.dtype != DType::kBool && !VisitNumber(condition.dtype, [](auto) {})) {
    return WrongArgument("condition",
                         absl::StrCat("flags or numbers, found ", TypeToString(condition)));
  }
  BoundRowFunction bound;
  bound.type = {DType::kString, condition.shape};
  bound.tensor_arguments = {0};
  bound.broadcasts = true;
  std::optional<std::string> constants[2];
  for (int i = 1; i <= 2; ++i) {
    const Argument& argument = arguments[i];
    if (argument.literal != nullptr && std::holds_alternative<std::string>(*argument.literal)) {
      constants[i - 1] = std::get<std::string>(*argument.literal);
      continue;
    }
    if (absl::Status status = ReadStrings(argument, i == 1 ? "x" : "y"); !status.ok())
      return status;
    auto joined = BroadcastShapes(bound.type.shape, argument.type.shape);
    if (!joined) {
      return absl::InvalidArgumentError(
          absl::StrCat("shapes do not broadcast: ", ShapeToString(bound.type.shape), " and ",
                       ShapeToString(argument.type.shape)));
    }
    bound.type.shape = *std::move(joined);
    bound.tensor_arguments.push_back(i);
  }
  bound.kernel = std::make_shared<StringWhere>(condition.dtype, std::move(constants[0]),
                                               std::move(constants[1]), bound.type.shape);
  return bound;
}

const RowFunctionRegistration kStringWhere({
    .name = "string_where",
    .signature = "string_where(condition, x, y)",
    .doc = "The text x where the condition is true, else y: what `where(condition, x, y)` is of "
           "strings. The three broadcast.\n"
           "\n"
           "condition: flags, or numbers, of which those other than zero are true.\n"
           "x, y: strings, tensors of strings, or constants.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
