// x[a:b, ..., [0, 4, 8], None, 3]: NumPy's subscripts, by constants: a view where the tensor is a
// block of memory of known size.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/expr/constant.h"
#include "server/expr/picks.h"
#include "server/expr/typer.h"

namespace penstock::expr {
namespace {

// How many axes the items of a subscript use up.
absl::StatusOr<size_t> CountIndexing(const Syntax& syntax, const Value& base, size_t visible) {
  size_t indexing = 0;
  int ellipses = 0;
  for (size_t i = 1; i < syntax.children.size(); ++i) {
    const Syntax& item = *syntax.children[i];
    ellipses += item.kind == Syntax::Kind::kEllipsis;
    indexing += item.kind != Syntax::Kind::kEllipsis && item.kind != Syntax::Kind::kNewAxis;
    if (ellipses > 1) return ErrorAt(item.column, "expected at most one '...'");
  }
  if (indexing > visible) {
    return ErrorAt(syntax.column, absl::StrCat("expected at most ", visible, " indices, found ",
                                               indexing, " for ", Shown(base)));
  }
  return indexing;
}

absl::Status RefuseBatch(int column, const Value& base) {
  return ErrorAt(column, absl::StrCat("the first axis of ", Shown(base),
                                      " is the batch, whose rows must be independent: write x[:, "
                                      "...], or index before batch"));
}

// The elements of an axis of known size that a pick takes.
std::vector<int64_t> Taken(const Pick& pick, int64_t size) {
  std::vector<int64_t> taken = pick.indices;
  for (int64_t& index : taken) {
    if (index < 0) index += size;
  }
  if (pick.kind != Pick::Kind::kSlice) return taken;
  const Stretch stretch = StretchOf(pick, size);
  for (int64_t i = 0; i < stretch.count; ++i) taken.push_back(stretch.first + i * stretch.step);
  return taken;
}

}  // namespace

absl::StatusOr<std::optional<size_t>> Typer::IntegerOfData(const Syntax& syntax, const Value& value,
                                                           std::vector<const Node*>* of_data) {
  const Node* const node = value.node;
  if (node == nullptr || node->is_constant() || !IsInteger(node->type.dtype) ||
      !node->type.shape.empty()) {
    return std::nullopt;
  }
  if (value.batch_axis) {
    return ErrorAt(syntax.column, absl::StrCat("expected an integer, found ", Shown(value),
                                               ", one for each row of the batch"));
  }
  of_data->push_back(node);
  return of_data->size() - 1;
}

absl::StatusOr<Pick> Typer::ReadSlice(const Syntax& item, std::vector<const Node*>* of_data) {
  std::vector<std::optional<int64_t>> bounds(3);
  std::vector<std::optional<size_t>> from(3);
  for (int part = 0; part < 3; ++part) {
    if (item.children[part] == nullptr) continue;
    auto bound = Type(*item.children[part]);
    if (!bound.ok()) return bound.status();
    if (part < 2) {
      auto integer = IntegerOfData(*item.children[part], *bound, of_data);
      if (!integer.ok()) return integer.status();
      from[part] = *integer;
      if (from[part]) continue;
    }
    auto values = Integers(*item.children[part], *bound);
    if (!values.ok()) return values.status();
    if (!bound->node->type.shape.empty()) {
      return ErrorAt(item.children[part]->column, "expected one integer as a slice's bound");
    }
    bounds[part] = (*values)[0];
  }
  Pick pick;
  pick.start = bounds[0];
  pick.stop = bounds[1];
  pick.step = bounds[2].value_or(1);
  pick.start_from = from[0];
  pick.stop_from = from[1];
  if (pick.step == 0) return ErrorAt(item.column, "expected a slice's step other than 0");
  return pick;
}

absl::StatusOr<Pick> Typer::ReadIndex(const Syntax& item, std::vector<const Node*>* of_data) {
  auto index = Type(item);
  if (!index.ok()) return index.status();
  auto integer = IntegerOfData(item, *index, of_data);
  if (!integer.ok()) return integer.status();
  Pick pick;
  if (*integer) {
    pick.kind = Pick::Kind::kIndex;
    pick.index_from = *integer;
    return pick;
  }
  auto values = Integers(item, *index);
  if (!values.ok()) return values.status();
  pick.kind = index->node->type.shape.empty() ? Pick::Kind::kIndex : Pick::Kind::kList;
  pick.indices = *std::move(values);
  return pick;
}

absl::StatusOr<std::vector<Pick>> Typer::ReadPicks(const Syntax& syntax, const Value& base,
                                                   std::vector<const Node*>* of_data) {
  const Shape& shape = base.node->type.shape;
  const size_t hidden = base.batch_axis ? 1 : 0;
  const size_t visible = shape.size() + hidden;
  const auto indexing = CountIndexing(syntax, base, visible);
  if (!indexing.ok()) return indexing.status();
  std::vector<Pick> picks;
  size_t axis = 0;  // of the visible ones
  const auto keep_axis = [&] {
    if (axis >= hidden) {
      picks.emplace_back();
      picks.back().axis = axis - hidden;
    }
    ++axis;
  };
  bool listed = false;
  bool single = false;
  for (size_t i = 1; i < syntax.children.size(); ++i) {
    const Syntax& item = *syntax.children[i];
    if (item.kind == Syntax::Kind::kEllipsis) {
      for (size_t n = visible - *indexing; n > 0; --n) keep_axis();
      continue;
    }
    const bool on_batch = axis < hidden;
    if (item.kind == Syntax::Kind::kNewAxis) {
      if (on_batch) return RefuseBatch(item.column, base);
      picks.emplace_back();
      picks.back().kind = Pick::Kind::kNewAxis;
      continue;
    }
    if (on_batch && item.kind != Syntax::Kind::kSlice) return RefuseBatch(item.column, base);
    auto pick =
        item.kind == Syntax::Kind::kSlice ? ReadSlice(item, of_data) : ReadIndex(item, of_data);
    if (!pick.ok()) return pick.status();
    if (on_batch) {
      if (pick->start.value_or(0) != 0 || pick->stop || pick->step != 1 || pick->of_data())
        return RefuseBatch(item.column, base);
      ++axis;
      continue;
    }
    pick->axis = axis++ - hidden;
    listed |= pick->kind == Pick::Kind::kList;
    single |= pick->kind == Pick::Kind::kIndex;
    if (pick->kind == Pick::Kind::kList &&
        std::any_of(picks.begin(), picks.end(),
                    [](const Pick& other) { return other.kind == Pick::Kind::kList; })) {
      return ErrorAt(item.column, "expected at most one list in a subscript");
    }
    if (listed && single) {
      return ErrorAt(item.column, "a list and an integer in one subscript: write x[…][…]");
    }
    if (const int64_t size = shape[pick->axis]; size != kUnknownSize) {
      if (pick->kind == Pick::Kind::kSlice && !pick->of_data() &&
          StretchOf(*pick, size).count == 0) {
        return ErrorAt(item.column, absl::StrCat("a slice without elements of an axis of ", size));
      }
      for (const int64_t index : pick->indices) {
        if (index >= -size && index < size) continue;
        return ErrorAt(item.column, absl::StrCat("index ", index, " is out of an axis of ", size,
                                                 ": ", Shown(base)));
      }
    }
    picks.push_back(*std::move(pick));
  }
  while (axis < visible) keep_axis();
  return picks;
}

Typer::Result Typer::TypeSubscript(const Syntax& syntax) {
  auto base = Type(*syntax.children[0]);
  if (!base.ok()) return base;
  if (absl::Status status = RefusePacked(syntax, *base); !status.ok()) return status;
  if (base->node == nullptr) {
    return ErrorAt(syntax.column,
                   absl::StrCat("expected a tensor before '[', found ", Shown(*base)));
  }
  std::vector<const Node*> of_data;
  const auto picks = ReadPicks(syntax, *base, &of_data);
  if (!picks.ok()) return picks.status();
  if (!of_data.empty() || !IsViewable(*base->node)) {
    std::vector<Argument> arguments(1);
    DataIntegers integers;
    std::string key = PicksToString(*picks);
    for (const Node* node : of_data) {
      arguments.push_back({.type = node->type});
      absl::Status status = integers.Add(arguments, static_cast<int>(arguments.size()) - 1,
                                         "subscript", INT64_MIN, INT64_MAX);
      if (!status.ok()) return At(syntax, status);
    }
    return BindRow(syntax, "subscript", BindPicks(base->node->type, *picks, std::move(integers)),
                   *base, key, of_data);
  }
  Shape result;
  std::vector<std::vector<int64_t>> taken;  // of each axis
  int64_t elements = 1;
  for (const Pick& pick : *picks) {
    if (pick.kind == Pick::Kind::kNewAxis) {
      result.push_back(1);
      continue;
    }
    taken.push_back(Taken(pick, base->node->type.shape[pick.axis]));
    const auto count = static_cast<int64_t>(taken.back().size());
    if (pick.kind != Pick::Kind::kIndex) result.push_back(count);
    elements *= count;
    if (elements > kMaxViewElements) {
      return ErrorAt(syntax.column, absl::StrCat("more than ", kMaxViewElements, " elements"));
    }
  }
  // Extends the list of elements axis by axis, outermost first.
  std::vector<int32_t> source = {0};
  for (size_t axis = 0; axis < taken.size(); ++axis) {
    std::vector<int32_t> next;
    next.reserve(source.size() * taken[axis].size());
    const int64_t size = base->node->type.shape[axis];
    for (const int32_t outer : source) {
      for (const int64_t index : taken[axis])
        next.push_back(static_cast<int32_t>(outer * size + index));
    }
    source = std::move(next);
  }
  auto node = graph_.View(base->node, result, std::move(source));
  if (!node.ok()) return At(syntax, node.status());
  return Value{*node, base->batch_axis, {}};
}

}  // namespace penstock::expr
