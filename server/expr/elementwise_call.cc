// An elementwise function's result: the shape that its operands broadcast to, and the type that
// they are computed in.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/expr/broadcast.h"
#include "server/expr/constant.h"
#include "server/expr/half_values.h"
#include "server/expr/picks.h"
#include "server/expr/promotion.h"
#include "server/expr/typer.h"
#include "server/kernels/arithmetic.h"

namespace penstock::expr {
namespace {

// Whether a constant broadcasts to `shape` as the same elements over and over: its axes, but for
// leading ones of size 1, are the last ones of `shape`.
bool RepeatsInside(const Shape& constant, const Shape& shape) {
  size_t first = 0;
  while (first < constant.size() && constant[first] == 1) ++first;
  return std::equal(constant.rbegin(), constant.rend() - first, shape.rbegin());
}

// Whether a value, aligned with `shape` as broadcasting does, has size 1 on each axis that only the
// data tells.
bool IsOneWhere(const Shape& value, const Shape& shape) {
  for (size_t i = 0; i < value.size() && i < shape.size(); ++i) {
    if (shape[shape.size() - 1 - i] == kUnknownSize && value[value.size() - 1 - i] != 1)
      return false;
  }
  return true;
}

// Of what is computed in one type.
struct Computation {
  const ElementwiseFunction* function;
  DType type;  // that the operands are cast to
  DType result;
  bool weak;  // as a literal's
};

absl::Status Refuse(const Syntax& syntax, std::string_view name, const char* expected,
                    const Value& found) {
  return ErrorAt(syntax.column,
                 absl::StrCat(Text(name), ": expected ", expected, ", found ", Shown(found)));
}

// The first value of such a type, to blame it.
const Value& FirstOf(const std::vector<Value>& values, bool (*is_such)(DType)) {
  for (const Value& value : values) {
    if (is_such(value.node->type.dtype)) return value;
  }
  return values.back();
}

absl::Status CheckNumbers(const Syntax& syntax, std::string_view name,
                          const std::vector<Value>& values) {
  for (const Value& value : values) {
    if (value.node == nullptr || value.node->type.dtype == DType::kString)
      return Refuse(syntax, name, "numbers", value);
    if (IsHalf(value.node->type.dtype)) {
      return ErrorAt(syntax.column, absl::StrCat(Text(name), ": nothing is computed in ",
                                                 Text(DTypeName(value.node->type.dtype)),
                                                 ": cast to it last, and to float32 before, found ",
                                                 Shown(value)));
    }
  }
  return absl::OkStatus();
}

// The most axes of one row.
size_t RankOfRows(const std::vector<Value>& values) {
  size_t rank = 0;
  for (const Value& value : values) {
    if (value.batch_axis) rank = std::max(rank, value.node->type.shape.size());
  }
  return rank;
}

// Takes off a leading axis of one, which repeats along the batch.
absl::Status KeepRowsApart(const Syntax& syntax, std::string_view name, Graph& graph,
                           std::vector<Value>* values) {
  const size_t rank = RankOfRows(*values);
  for (Value& value : *values) {
    const Shape& own = value.node->type.shape;
    if (value.batch_axis || own.size() != rank + 1 || own[0] != 1) continue;
    auto row = graph.View(value.node, Shape(own.begin() + 1, own.end()), {});
    if (!row.ok()) return At(syntax, row.status());
    value.node = *row;
  }
  return CheckRowsApart(syntax, name, *values);
}

// What the operands broadcast to; of a size that only the data tells, too.
absl::StatusOr<Shape> CommonShape(const Syntax& syntax, std::string_view name,
                                  const std::vector<Value>& values) {
  Shape shape;
  for (const Value& value : values) {
    auto joined = BroadcastShapes(shape, value.node->type.shape);
    if (!joined) {
      return ErrorAt(syntax.column, absl::StrCat(Text(name), ": shapes do not broadcast: ",
                                                 Shown(values[0]), " and ", Shown(value)));
    }
    shape = *joined;
  }
  return shape;
}

bool HoldsNegative(const Node& node) {
  if (!node.is_constant() || !IsInteger(node.type.dtype)) return false;
  const std::vector<int64_t> values = ConstantIntegers(node);
  return std::any_of(values.begin(), values.end(), [](int64_t value) { return value < 0; });
}

const ElementwiseFunction& Named(std::string_view name) {
  return std::get<ElementwiseFunction>(FindFunction(name)->function);
}

// What the function's rule says of the operands' common type.
absl::StatusOr<Computation> Decide(const Syntax& syntax, const ElementwiseFunction& function,
                                   const std::vector<Value>& values) {
  std::vector<Operand> operands;
  for (size_t i = function.rule == TypeRule::kSelect ? 1 : 0; i < values.size(); ++i) {
    operands.push_back({values[i].node->type.dtype, values[i].node->weak});
  }
  bool weak = false;
  const auto promoted = PromoteAll(operands, weak);
  if (!promoted) {
    return ErrorAt(syntax.column, absl::StrCat(Text(function.name), ": no common type of ",
                                               Shown(values[0]), " and ", Shown(values.back())));
  }
  Computation made{&function, *promoted, *promoted, weak};
  switch (function.rule) {
    case TypeRule::kPromote:
      // Flags add as "or" and multiply as "and".
      if (made.type == DType::kBool && !function.of_flags.empty())
        made.function = &Named(function.of_flags);
      break;
    case TypeRule::kNumber:
    case TypeRule::kPower:
      if (made.type == DType::kBool) return Refuse(syntax, function.name, "numbers", values.back());
      if (function.rule == TypeRule::kPower && IsInteger(made.type) &&
          HoldsNegative(*values[1].node)) {
        if (!made.weak) {
          return ErrorAt(syntax.column,
                         absl::StrCat(Text(function.name),
                                      ": integers to negative integer powers are not allowed: "
                                      "make the base a float, as float32(x) ** -1; found ",
                                      Shown(values[0])));
        }
        // Of literals it is a number as in Python: 10 ** -3 is 0.001.
        made.result = made.type = DType::kFloat64;
      }
      break;
    case TypeRule::kIntegral:
      if (IsFloating(made.type)) {
        return Refuse(syntax, function.name, "integers or bools", FirstOf(values, IsFloating));
      }
      break;
    case TypeRule::kInteger:
      if (IsFloating(made.type))
        return Refuse(syntax, function.name, "integers", FirstOf(values, IsFloating));
      if (made.type == DType::kBool)
        return Refuse(syntax, function.name, "integers", values.back());
      break;
    case TypeRule::kFloating:
      made.result = made.type = ToFloating(made.type);
      break;
    case TypeRule::kDivide:
      made.result = made.type = IsFloating(made.type) ? made.type : DType::kFloat64;
      break;
    case TypeRule::kCompare:
      made.result = DType::kBool;
      made.weak = false;
      break;
    case TypeRule::kRound:
    case TypeRule::kSelect:
    case TypeRule::kCast:
      break;
  }
  return made;
}

// Whether a literal among the operands lies outside of the type that they are computed in: nullptr,
// or the first such one.
const Node* FindUnfit(const ElementwiseFunction& function, DType type,
                      const std::vector<Value>& values) {
  for (size_t i = function.rule == TypeRule::kSelect ? 1 : 0; i < values.size(); ++i) {
    const Node* node = values[i].node;
    if (node->weak && IsInteger(type) && !FitsInteger(*node, type)) return node;
  }
  return nullptr;
}

// Whether the function looks at the order of its operands, and not only at which of them are zero.
bool Orders(const ElementwiseFunction& function) {
  return function.rule == TypeRule::kCompare &&
         function.operation.lookup == kernels::FindComparison &&
         function.operation.code <= static_cast<int>(kernels::Comparison::kGreaterEqual);
}

// Whether a signed integer is compared with one of uint64: no type holds both, and float64 would
// take different ones for equal.
bool MixesSigns(const ElementwiseFunction& function, const std::vector<Value>& values) {
  if (!Orders(function)) return false;
  const Node& a = *values[0].node;
  const Node& b = *values[1].node;
  if (a.weak || b.weak || !IsInteger(a.type.dtype) || !IsInteger(b.type.dtype)) return false;
  return IsSigned(a.type.dtype) ? b.type.dtype == DType::kUint64
                                : IsSigned(b.type.dtype) && a.type.dtype == DType::kUint64;
}

}  // namespace

absl::Status CheckRowsApart(const Syntax& syntax, std::string_view name,
                            const std::vector<Value>& values) {
  const size_t rank = RankOfRows(values);
  for (const Value& value : values) {
    const size_t own = value.node->type.shape.size();
    if (value.batch_axis ? own == rank : own <= rank) continue;
    return ErrorAt(
        syntax.column,
        absl::StrCat(Text(name), ": broadcasting ", Shown(values.front()), " with ",
                     Shown(values.back()),
                     " reaches the batch axis, but rows must be independent: give both the "
                     "same number of axes (x[:, None]) or compute this before batch"));
  }
  return absl::OkStatus();
}

// A negative one is less than all of uint64; the others are compared there.
Typer::Result Typer::CompareMixedSigns(const Syntax& syntax, const ElementwiseFunction& function,
                                       std::vector<Value> values) {
  Value& is_signed = values[IsSigned(values[0].node->type.dtype) ? 0 : 1];
  const bool is_left = &is_signed == &values[0];
  auto zero = Scalar(DType::kInt64, 0);
  if (!zero.ok()) return At(syntax, zero.status());
  Result negative = Apply(syntax, Named("less"), {is_signed, Value{*zero, false, {}}});
  if (!negative.ok()) return negative;
  auto cast = graph_.Cast(is_signed.node, DType::kUint64);
  if (!cast.ok()) return At(syntax, cast.status());
  is_signed.node = *cast;
  Result compared = Apply(syntax, function, std::move(values));
  if (!compared.ok()) return compared;
  if (is_left ? function.of_lesser : function.of_greater) {
    return Apply(syntax, Named("bitwise_or"), {*std::move(negative), *std::move(compared)});
  }
  Result others = Apply(syntax, Named("invert"), {*std::move(negative)});
  if (!others.ok()) return others;
  return Apply(syntax, Named("bitwise_and"), {*std::move(others), *std::move(compared)});
}

Typer::Result Typer::Apply(const Syntax& syntax, const ElementwiseFunction& function,
                           std::vector<Value> values) {
  if (function.rule == TypeRule::kCast && values[0].node != nullptr &&
      IsHalf(values[0].node->type.dtype)) {
    auto wide = BindRow(syntax, "widen", WidenHalves(values[0].node->type), values[0], "");
    if (!wide.ok()) return wide;
    values[0] = *std::move(wide);
  }
  if (absl::Status status = CheckNumbers(syntax, function.name, values); !status.ok())
    return status;
  bool batch = false;
  for (const Value& value : values) batch |= value.batch_axis;
  if (batch) {
    if (absl::Status status = KeepRowsApart(syntax, function.name, graph_, &values); !status.ok())
      return status;
  }
  const auto shape = CommonShape(syntax, function.name, values);
  if (!shape.ok()) return shape.status();
  if (MixesSigns(function, values)) return CompareMixedSigns(syntax, function, std::move(values));
  auto made = Decide(syntax, function, values);
  if (!made.ok()) return made.status();
  if (absl::Status status = CheckRowElements(syntax, function.name, {made->result, *shape});
      !status.ok())
    return status;
  if (function.rule == TypeRule::kCast) {
    auto cast = graph_.Cast(values[0].node, function.cast_to);
    if (!cast.ok()) return At(syntax, cast.status());
    return Value{*cast, batch, {}};
  }
  if (function.rule == TypeRule::kRound && !IsFloating(made->type)) return values[0];
  if (made->type == DType::kBool && made->function == &function && !function.of_flags.empty()) {
    // The opposite of a flag: turning over all of its bits would not give one.
    auto no = graph_.Constant({DType::kBool, {}}, {0}, false);
    if (!no.ok()) return At(syntax, no.status());
    return Apply(syntax, Named(function.of_flags), {values[0], Value{*no, false, {}}});
  }
  if (const Node* unfit = FindUnfit(function, made->type, values); unfit != nullptr) {
    // Comparing with one that does not fit is still exact in the literal's type, to which the
    // others saturate.
    if (function.rule != TypeRule::kCompare) {
      return ErrorAt(syntax.column,
                     absl::StrCat(Text(function.name), ": ", IntegerText(*unfit),
                                  " is out of the range of ", Text(DTypeName(made->type))));
    }
    made->type = Orders(function) ? unfit->type.dtype : DType::kFloat64;
  }
  auto nodes = Operands(syntax, function, made->type, *shape, values);
  if (!nodes.ok()) return nodes.status();
  auto node = graph_.Elementwise(*made->function, *std::move(nodes), {made->result, *shape});
  if (!node.ok()) return At(syntax, node.status());
  if (made->weak && (*node)->is_constant() && shape->empty()) {
    node = graph_.Constant((*node)->type, (*node)->data, true);
    if (!node.ok()) return At(syntax, node.status());
  }
  return Value{*node, batch, {}};
}

absl::StatusOr<std::vector<const Node*>> Typer::Operands(const Syntax& syntax,
                                                         const ElementwiseFunction& function,
                                                         DType type, const Shape& shape,
                                                         const std::vector<Value>& values) {
  std::vector<const Node*> nodes;
  // The operand that has all sizes of the result, where only the data tells them.
  const Node* whole = nullptr;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool is_condition = function.rule == TypeRule::kSelect && i == 0;
    auto cast = graph_.Cast(values[i].node, is_condition ? DType::kBool : type);
    if (!cast.ok()) return At(syntax, cast.status());
    nodes.push_back(*cast);
    if (whole == nullptr && (*cast)->type.shape == shape) whole = *cast;
  }
  // What takes the sizes that it lacks from all others.
  const auto widen = [&](const Node*& node) {
    std::vector<const Node*> arguments = {node};
    for (const Node*& other : nodes) {
      if (&other != &node && !other->type.shape.empty()) arguments.push_back(other);
    }
    return graph_.Row(BindBroadcast(node->type.dtype, shape), std::move(arguments), "broadcast");
  };
  // Whether no other one can be larger than it: a size that only the data tells may be 1.
  const bool is_largest =
      whole != nullptr && std::all_of(nodes.begin(), nodes.end(), [&](const Node* node) {
        return node->fixed() || node->sizes_of == whole->sizes_of ||
               IsOneWhere(node->type.shape, shape);
      });
  if (HasUnknownSize(shape) && !is_largest) {
    const Node*& first = *std::find_if(nodes.begin(), nodes.end(), [&](const Node* node) {
      return whole == nullptr ? !node->fixed() : node == whole;
    });
    auto wide = widen(first);
    if (!wide.ok()) return At(syntax, wide.status());
    first = whole = *wide;
  }
  for (const Node*& node : nodes) {
    auto wide = absl::StatusOr<const Node*>(node);
    if (whole != nullptr && !whole->fixed()) {
      const bool repeats = node->is_constant() && RepeatsInside(node->type.shape, shape);
      if (repeats || (node->type.shape == shape && node->sizes_of == whole->sizes_of)) continue;
      // A literal has a type as soon as a kernel sees it.
      auto strong = graph_.Cast(node, node->type.dtype);
      if (!strong.ok()) return At(syntax, strong.status());
      wide = graph_.Row(BindBroadcastTo(node->type.dtype, shape), {*strong, whole->sizes_of},
                        "broadcast to", whole->sizes_of);
    } else if (!node->fixed()) {
      wide = widen(node);
    } else if (node->elements() != *NumElements(shape) &&
               !(node->is_constant() && node->elements() == 1)) {
      wide = graph_.Broadcast(node, shape);
    }
    if (!wide.ok()) return At(syntax, wide.status());
    node = *wide;
  }
  return nodes;
}

}  // namespace penstock::expr
