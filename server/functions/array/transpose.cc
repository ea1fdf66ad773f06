#include <utility>

#include "absl/strings/str_cat.h"
#include "server/expr/function.h"
#include "server/expr/picks.h"

namespace penstock::expr {
namespace {

// Which axis of a row becomes each axis of the result.
absl::StatusOr<std::vector<size_t>> ReadOrder(absl::Span<const Argument> arguments, bool batched) {
  const size_t hidden = batched ? 1 : 0;
  const size_t axes = arguments[0].type.shape.size();
  std::vector<size_t> order;
  if (!arguments[1].given) {
    if (batched) return absl::InvalidArgumentError("after batch expected axes that begin with 0");
    for (size_t i = axes; i-- > 0;) order.push_back(i);
    return order;
  }
  const auto* list =
      arguments[1].literal ? std::get_if<std::vector<int64_t>>(arguments[1].literal) : nullptr;
  if (list == nullptr || list->size() != axes + hidden) {
    return absl::InvalidArgumentError(absl::StrCat("expected a list of ", axes + hidden, " axes"));
  }
  std::vector<bool> seen(list->size());
  for (size_t i = 0; i < list->size(); ++i) {
    int64_t axis = (*list)[i];
    if (axis < 0) axis += static_cast<int64_t>(list->size());
    if (axis < 0 || axis >= static_cast<int64_t>(list->size()) || seen[axis]) {
      return absl::InvalidArgumentError("expected each axis once");
    }
    seen[axis] = true;
    if (i < hidden) {
      if (axis != 0) {
        return absl::InvalidArgumentError(
            "the first axis is the batch, whose rows must be independent: it must stay first");
      }
      continue;
    }
    order.push_back(static_cast<size_t>(axis) - hidden);
  }
  return order;
}

absl::StatusOr<BoundView> Bind(absl::Span<const Argument> arguments, bool batched) {
  const auto order = ReadOrder(arguments, batched);
  if (!order.ok()) return order.status();
  const Shape& shape = arguments[0].type.shape;
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  BoundView view;
  std::vector<int32_t> source = {0};
  for (const size_t axis : *order) {
    view.shape.push_back(shape[axis]);
    std::vector<int32_t> next;
    next.reserve(source.size() * shape[axis]);
    for (const int32_t outer : source) {
      for (int64_t i = 0; i < shape[axis]; ++i) {
        next.push_back(static_cast<int32_t>(outer + i * strides[axis]));
      }
    }
    source = std::move(next);
  }
  view.source = std::move(source);
  return view;
}

absl::StatusOr<BoundRowFunction> BindRow(absl::Span<const Argument> arguments, bool batched) {
  const auto order = ReadOrder(arguments, batched);
  if (!order.ok()) return order.status();
  std::vector<Pick> picks(order->size());
  for (size_t i = 0; i < picks.size(); ++i) picks[i].axis = (*order)[i];
  return BindPicks(arguments[0].type, std::move(picks));
}

const ViewRegistration kRegistration({
    "transpose",
    "transpose(x, axes=None)",
    "The axes in another order, a list of integers; without it reversed. Axis 0 of a batch stays.",
    Bind,
    BindRow,
});

}  // namespace
}  // namespace penstock::expr
