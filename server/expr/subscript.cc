// x[a:b, ..., [0, 4, 8], None, 3]: NumPy's subscripts, by constants, as a view.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/expr/constant.h"
#include "server/expr/typer.h"

namespace penstock::expr {
namespace {

// The elements taken from one axis of the value, or an axis that is new.
struct Axis {
  std::vector<int64_t> taken;
  bool kept = true;  // an integer index removes its axis
  bool added = false;
};

std::vector<int64_t> Range(int64_t start, int64_t stop, int64_t step) {
  std::vector<int64_t> taken;
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) taken.push_back(i);
  return taken;
}

}  // namespace

Typer::Result Typer::TypeSubscript(const Syntax& syntax) {
  auto base = Type(*syntax.children[0]);
  if (!base.ok()) return base;
  if (base->node == nullptr || base->node->type.dtype == DType::kString || !base->node->fixed()) {
    return ErrorAt(
        syntax.column,
        absl::StrCat("expected a tensor of known sizes in front of '[', found ", Shown(*base)));
  }
  const Shape& shape = base->node->type.shape;
  if (base->node->elements() > kMaxViewElements) {
    return ErrorAt(syntax.column,
                   absl::StrCat("more than ", kMaxViewElements, " elements: ", Shown(*base)));
  }

  const size_t visible = shape.size() + (base->batch_axis ? 1 : 0);
  size_t indexing = 0;  // items that use up an axis
  int ellipses = 0;
  for (size_t i = 1; i < syntax.children.size(); ++i) {
    const Syntax& item = *syntax.children[i];
    ellipses += item.kind == Syntax::Kind::kEllipsis;
    indexing += item.kind != Syntax::Kind::kEllipsis && item.kind != Syntax::Kind::kNewAxis;
    if (ellipses > 1) return ErrorAt(item.column, "expected at most one '...'");
  }
  if (indexing > visible) {
    return ErrorAt(syntax.column, absl::StrCat("expected at most ", visible, " indices, found ",
                                               indexing, " for ", Shown(*base)));
  }

  std::vector<Axis> axes;
  size_t axis = 0;  // of the visible ones
  bool listed = false;
  bool single = false;
  const auto keep_axis = [&] {
    if (!base->batch_axis || axis > 0) {
      const int64_t size = shape[axis - (base->batch_axis ? 1 : 0)];
      axes.push_back({Range(0, size, 1)});
    }
    ++axis;
  };
  const auto batch_refused = [&](int column) {
    return ErrorAt(column, absl::StrCat("the first axis of ", Shown(*base),
                                        " is the batch, whose rows must be independent: write x[:, "
                                        "...], or index before batch"));
  };
  for (size_t i = 1; i < syntax.children.size(); ++i) {
    const Syntax& item = *syntax.children[i];
    if (item.kind == Syntax::Kind::kEllipsis) {
      for (size_t n = visible - indexing; n > 0; --n) keep_axis();
      continue;
    }
    if (item.kind == Syntax::Kind::kNewAxis) {
      if (base->batch_axis && axis == 0) return batch_refused(item.column);
      axes.push_back({{0}, true, true});
      continue;
    }
    const bool on_batch = base->batch_axis && axis == 0;
    const int64_t size = on_batch ? 0 : shape[axis - (base->batch_axis ? 1 : 0)];
    if (item.kind == Syntax::Kind::kSlice) {
      std::vector<std::optional<int64_t>> bounds(3);
      for (int part = 0; part < 3; ++part) {
        if (item.children[part] == nullptr) continue;
        auto bound = Type(*item.children[part]);
        if (!bound.ok()) return bound;
        auto values = Integers(*item.children[part], *bound);
        if (!values.ok()) return values.status();
        if (!bound->node->type.shape.empty()) {
          return ErrorAt(item.children[part]->column, "expected one integer as a slice's bound");
        }
        bounds[part] = (*values)[0];
      }
      const int64_t step = bounds[2].value_or(1);
      if (step == 0) return ErrorAt(item.column, "expected a slice's step other than 0");
      if (on_batch) {
        if (bounds[0].value_or(0) != 0 || bounds[1] || step != 1) return batch_refused(item.column);
        ++axis;
        continue;
      }
      // Python's rules: negative bounds count from the end, and all are cut to the axis.
      const int64_t lowest = step > 0 ? 0 : -1;
      const int64_t highest = step > 0 ? size : size - 1;
      const auto cut = [&](std::optional<int64_t> bound, int64_t absent) {
        if (!bound) return absent;
        return std::clamp(*bound < 0 ? *bound + size : *bound, lowest, highest);
      };
      const int64_t start = cut(bounds[0], step > 0 ? 0 : size - 1);
      const int64_t stop = cut(bounds[1], step > 0 ? size : -1);
      axes.push_back({Range(start, stop, std::clamp(step, -size - 1, size + 1))});
      if (axes.back().taken.empty()) {
        return ErrorAt(item.column, absl::StrCat("a slice without elements of an axis of ", size));
      }
    } else {
      if (on_batch) return batch_refused(item.column);
      auto index = Type(item);
      if (!index.ok()) return index;
      auto values = Integers(item, *index);
      if (!values.ok()) return values.status();
      for (int64_t& value : *values) {
        if (value < -size || value >= size) {
          return ErrorAt(item.column, absl::StrCat("index ", value, " is out of an axis of ", size,
                                                   ": ", Shown(*base)));
        }
        if (value < 0) value += size;
      }
      const bool list = !index->node->type.shape.empty();
      if (list && listed) return ErrorAt(item.column, "expected at most one list in a subscript");
      (list ? listed : single) = true;
      if (listed && single) {
        return ErrorAt(item.column, "a list and an integer in one subscript: write x[…][…]");
      }
      axes.push_back({std::move(*values), list});
    }
    ++axis;
  }
  while (axis < visible) keep_axis();

  Shape result;
  int64_t elements = 1;
  for (const Axis& a : axes) {
    if (a.kept) result.push_back(static_cast<int64_t>(a.taken.size()));
    elements *= static_cast<int64_t>(a.taken.size());
    if (elements > kMaxViewElements) {
      return ErrorAt(syntax.column, absl::StrCat("more than ", kMaxViewElements, " elements"));
    }
  }
  // Extends the list of elements axis by axis, outermost first.
  std::vector<int32_t> source = {0};
  size_t from = 0;
  for (const Axis& a : axes) {
    if (a.added) continue;
    std::vector<int32_t> next;
    next.reserve(source.size() * a.taken.size());
    const int64_t size = shape[from++];
    for (const int32_t outer : source) {
      for (const int64_t taken : a.taken)
        next.push_back(static_cast<int32_t>(outer * size + taken));
    }
    source = std::move(next);
  }
  auto node = graph_.View(base->node, result, std::move(source));
  if (!node.ok()) return At(syntax, node.status());
  return Value{*node, base->batch_axis, {}};
}

}  // namespace penstock::expr
