#include "server/expr/typer.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/expr/constant.h"
#include "server/expr/promotion.h"

namespace penstock::expr {
namespace {

std::string Text(std::string_view text) { return std::string(text); }

// The shape of a broadcast, NumPy's way; nullopt when the shapes do not match. An unknown size
// matches itself and 1.
std::optional<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

// Whether a constant broadcasts to `shape` as the same elements over and over: its axes, but for
// leading ones of size 1, are the last ones of `shape`.
bool RepeatsInside(const Shape& constant, const Shape& shape) {
  size_t first = 0;
  while (first < constant.size() && constant[first] == 1) ++first;
  return std::equal(constant.rbegin(), constant.rend() - first, shape.rbegin());
}

}  // namespace

absl::Status At(const Syntax& syntax, const absl::Status& status) {
  if (status.ok() || absl::StartsWith(status.message(), "column ")) return status;
  return ErrorAt(syntax.column, std::string(status.message()));
}

Typer::Typer(Graph& graph, const std::vector<NamedValue>& features, std::string_view stage,
             bool batched, FileSystem* files)
    : graph_(graph), features_(features), stage_(stage), batched_(batched), files_(files) {}

absl::Status Typer::AddConstant(const NamedConstant& constant) {
  auto node = MakeConstant(graph_, constant);
  if (!node.ok()) return node.status();
  if (!constants_.emplace(constant.name, Value{*node, false, {}}).second) {
    return absl::InvalidArgumentError(
        absl::StrCat("constant \"", constant.name, "\" is given twice"));
  }
  return absl::OkStatus();
}

absl::Status Typer::AddLet(std::string_view text) {
  auto assignment = ParseAssignment(text);
  if (!assignment.ok()) return assignment.status();
  if (constants_.contains(assignment->name)) {
    return ErrorAt(1, absl::StrCat("\"", assignment->name, "\" is the name of a constant"));
  }
  assigned_ = assignment->name;
  auto value = Type(*assignment->value);
  if (!value.ok()) return value.status();
  lets_[assignment->name] = std::move(*value);
  return absl::OkStatus();
}

absl::StatusOr<NamedValue> Typer::Output(std::string_view text) {
  auto assignment = ParseAssignment(text);
  if (!assignment.ok()) return assignment.status();
  assigned_ = assignment->name;
  auto value = Type(*assignment->value);
  if (!value.ok()) return value.status();
  if (value->node == nullptr) {
    return ErrorAt(assignment->value->column, "expected a tensor, found a text");
  }
  if (!outputs_.emplace(assignment->name, true).second) {
    return ErrorAt(1, absl::StrCat("output \"", assignment->name, "\" is given twice"));
  }
  return NamedValue{assignment->name, std::move(*value)};
}

Typer::Result Typer::Type(const Syntax& syntax) {
  switch (syntax.kind) {
    case Syntax::Kind::kInteger: {
      auto node = Scalar(DType::kInt64, 0, syntax.integer, true);
      if (!node.ok()) return At(syntax, node.status());
      return Value{*node, false, {}};
    }
    case Syntax::Kind::kFloat: {
      auto node = Scalar(DType::kFloat64, syntax.number, 0, true);
      if (!node.ok()) return At(syntax, node.status());
      return Value{*node, false, {}};
    }
    case Syntax::Kind::kFlag: {
      auto node =
          graph_.Constant({DType::kBool, {}}, {static_cast<uint8_t>(syntax.integer)}, false);
      if (!node.ok()) return At(syntax, node.status());
      return Value{*node, false, {}};
    }
    case Syntax::Kind::kText:
      return Value{nullptr, false, syntax.text};
    case Syntax::Kind::kName:
      return TypeName(syntax);
    case Syntax::Kind::kList:
      return TypeList(syntax);
    case Syntax::Kind::kCall:
      return syntax.text == "feature" ? TypeFeature(syntax) : TypeCall(syntax);
    case Syntax::Kind::kSubscript:
      return TypeSubscript(syntax);
    case Syntax::Kind::kSlice:
    case Syntax::Kind::kEllipsis:
    case Syntax::Kind::kNewAxis:
      break;
  }
  return ErrorAt(syntax.column, "expected a value, found an index");
}

absl::StatusOr<const Node*> Typer::Scalar(DType dtype, double number, int64_t integer, bool weak) {
  std::vector<uint8_t> data(8);
  if (dtype == DType::kFloat64) {
    std::memcpy(data.data(), &number, 8);
  } else {
    std::memcpy(data.data(), &integer, 8);
  }
  return graph_.Constant({dtype, {}}, std::move(data), weak);
}

std::vector<std::string> Typer::KnownNames() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : lets_) names.push_back(name);
  for (const auto& [name, value] : constants_) names.push_back(name);
  for (const NamedValue& feature : features_) names.push_back(feature.name);
  return names;
}

Typer::Result Typer::TypeName(const Syntax& syntax) {
  if (const auto found = lets_.find(syntax.text); found != lets_.end()) return found->second;
  const NamedValue* feature = nullptr;
  for (const NamedValue& candidate : features_) {
    if (candidate.name == syntax.text) feature = &candidate;
  }
  if (const auto found = constants_.find(syntax.text); found != constants_.end()) {
    if (feature != nullptr) {
      return ErrorAt(
          syntax.column,
          absl::StrCat("\"", syntax.text, "\" is both a constant and a feature: write feature(\"",
                       syntax.text, "\") or rename the constant"));
    }
    return found->second;
  }
  if (feature != nullptr) return feature->value;
  if (outputs_.contains(syntax.text)) {
    return ErrorAt(syntax.column,
                   absl::StrCat("\"", syntax.text,
                                "\" is an output, which no expression can use: make it a let"));
  }
  if (FindFunction(syntax.text) != nullptr) {
    return ErrorAt(syntax.column,
                   absl::StrCat("\"", syntax.text, "\" is a function: expected '('"));
  }
  return ErrorAt(syntax.column, absl::StrCat("unknown name \"", syntax.text, "\"",
                                             DidYouMean(syntax.text, KnownNames())));
}

Typer::Result Typer::TypeFeature(const Syntax& syntax) {
  if (syntax.children.size() != 1 || !syntax.keywords[0].empty() ||
      syntax.children[0]->kind != Syntax::Kind::kText) {
    return ErrorAt(syntax.column, "expected feature(\"name\")");
  }
  const std::string& name = syntax.children[0]->text;
  std::vector<std::string> names;
  for (const NamedValue& feature : features_) {
    if (feature.name == name) return feature.value;
    names.push_back(feature.name);
  }
  return ErrorAt(syntax.children[0]->column,
                 absl::StrCat("unknown feature \"", name, "\"", DidYouMean(name, names)));
}

Typer::Result Typer::TypeList(const Syntax& syntax) {
  NamedConstant list;
  list.has_shape = true;
  std::vector<const Node*> items;
  bool floating = false;
  for (const SyntaxPtr& child : syntax.children) {
    auto item = Type(*child);
    if (!item.ok()) return item;
    const Node* node = item->node;
    if (node == nullptr || !node->is_constant()) {
      return ErrorAt(child->column, "a list holds constants only");
    }
    if (!items.empty() && items[0]->type.shape != node->type.shape) {
      return ErrorAt(child->column,
                     absl::StrCat("expected an item of shape ", ShapeToString(items[0]->type.shape),
                                  ", found ", ShapeToString(node->type.shape)));
    }
    floating |= IsFloating(node->type.dtype);
    items.push_back(node);
  }
  if (items.empty()) return ErrorAt(syntax.column, "expected at least one item in a list");
  Shape shape = items[0]->type.shape;
  shape.insert(shape.begin(), static_cast<int64_t>(items.size()));
  const DType dtype = floating ? DType::kFloat64 : DType::kInt64;
  std::vector<uint8_t> data;
  for (const Node* item : items) {
    auto cast = graph_.Cast(item, dtype);
    if (!cast.ok()) return At(syntax, cast.status());
    data.insert(data.end(), (*cast)->data.begin(), (*cast)->data.end());
  }
  auto node = graph_.Constant({dtype, shape}, std::move(data), false);
  if (!node.ok()) return At(syntax, node.status());
  return Value{*node, false, {}};
}

std::string Typer::Shown(const Value& value) const {
  if (value.node == nullptr) return "a text";
  TensorType type = value.node->type;
  if (value.batch_axis) type.shape.insert(type.shape.begin(), kUnknownSize);
  return TypeToString(type);
}

absl::StatusOr<std::vector<int64_t>> Typer::Integers(const Syntax& syntax,
                                                     const Value& value) const {
  const Node* node = value.node;
  if (node == nullptr || !node->is_constant() || !IsInteger(node->type.dtype) ||
      node->type.shape.size() > 1) {
    return ErrorAt(
        syntax.column,
        absl::StrCat("expected a constant integer or list of integers, found ", Shown(value)));
  }
  return ConstantIntegers(*node);
}

Typer::Result Typer::TypeCall(const Syntax& syntax) {
  const FunctionEntry* entry = FindFunction(syntax.text);
  if (entry == nullptr) {
    std::vector<std::string> names = {"feature"};
    for (const FunctionEntry* known : AllFunctions()) names.push_back(Text(known->name()));
    return ErrorAt(syntax.column, absl::StrCat("unknown function \"", syntax.text, "\"",
                                               DidYouMean(syntax.text, names)));
  }
  const std::vector<Parameter>& parameters = entry->parameters;
  std::vector<std::optional<Value>> arguments(parameters.size());
  for (size_t i = 0; i < syntax.children.size(); ++i) {
    const Syntax& child = *syntax.children[i];
    size_t position = i;
    if (!syntax.keywords[i].empty()) {
      std::vector<std::string> names;
      for (position = 0; position < parameters.size(); ++position) {
        if (parameters[position].name == syntax.keywords[i]) break;
        names.push_back(parameters[position].name);
      }
      if (position == parameters.size()) {
        return ErrorAt(
            child.column,
            absl::StrCat(syntax.text, " has no argument \"", syntax.keywords[i], "\"",
                         DidYouMean(syntax.keywords[i], names), ": ", Text(entry->signature())));
      }
    }
    if (position >= parameters.size()) {
      return ErrorAt(child.column, absl::StrCat("expected at most ", parameters.size(),
                                                " arguments: ", Text(entry->signature())));
    }
    if (arguments[position].has_value()) {
      return ErrorAt(child.column,
                     absl::StrCat("argument \"", parameters[position].name, "\" is given twice"));
    }
    auto value = Type(child);
    if (!value.ok()) return value;
    arguments[position] = std::move(*value);
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].required && !arguments[i].has_value()) {
      return ErrorAt(syntax.column, absl::StrCat("missing argument \"", parameters[i].name,
                                                 "\": ", Text(entry->signature())));
    }
  }
  if (const auto* function = std::get_if<ElementwiseFunction>(&entry->function)) {
    std::vector<Value> values;
    for (auto& argument : arguments) values.push_back(std::move(*argument));
    return Apply(syntax, *function, std::move(values));
  }
  if (const auto* function = std::get_if<ViewFunction>(&entry->function)) {
    return Bind(syntax, *function, arguments);
  }
  return Bind(syntax, std::get<RowFunction>(entry->function), arguments);
}

Argument Typer::ToArgument(const std::optional<Value>& value) {
  Argument argument;
  argument.given = value.has_value();
  if (!value) return argument;
  if (value->text) {
    literals_.emplace_back(*value->text);
    argument.literal = &literals_.back();
    return argument;
  }
  const Node& node = *value->node;
  argument.type = node.type;
  argument.weak = node.weak;
  if (!node.is_constant()) return argument;
  if (node.type.shape.empty()) {
    if (node.type.dtype == DType::kBool) {
      literals_.emplace_back(node.data[0] != 0);
    } else if (IsFloating(node.type.dtype)) {
      literals_.emplace_back(ScalarValue(node));
    } else {
      literals_.emplace_back(ScalarInteger(node));
    }
    argument.literal = &literals_.back();
  } else if (IsInteger(node.type.dtype) &&
             (node.type.shape.size() == 1 ||
              (node.type.shape.size() == 2 && node.type.shape[1] == 2))) {
    // Pairs one behind the other.
    literals_.emplace_back(ConstantIntegers(node));
    argument.literal = &literals_.back();
  } else if (node.type == TensorType{DType::kFloat64, node.type.shape} &&
             node.type.shape.size() == 1) {
    std::vector<double> numbers(node.data.size() / sizeof(double));
    std::memcpy(numbers.data(), node.data.data(), node.data.size());
    literals_.emplace_back(std::move(numbers));
    argument.literal = &literals_.back();
  }
  return argument;
}

DrawSource Typer::MakeDrawSource(const Syntax& syntax, const RowFunction& function,
                                 const Argument& seed, std::string* key) {
  DrawSource source;
  source.call =
      absl::StrCat(stage_, ", ", assigned_, ", column ", syntax.column, ": ", Text(function.name));
  const auto* const given = seed.literal == nullptr ? nullptr : std::get_if<int64_t>(seed.literal);
  if (given != nullptr) {
    source.key =
        MixKey(static_cast<uint64_t>(*given), absl::StrCat(stage_, "/", Text(function.name)));
    return source;
  }
  // A plan has given every call a seed; what is compiled without one is told apart by its place.
  const int call = calls_without_seed_++;
  source.key = MixKey(static_cast<uint64_t>(call), absl::StrCat(stage_, "//", Text(function.name)));
  absl::StrAppend(key, " call ", stage_, "/", call);
  return source;
}

Typer::Result Typer::Bind(const Syntax& syntax, const RowFunction& function,
                          const std::vector<std::optional<Value>>& values) {
  std::vector<Argument> arguments;
  std::string key = Text(function.name);
  bool batch = false;
  for (const auto& value : values) {
    arguments.push_back(ToArgument(value));
    batch |= value && value->batch_axis;
    if (value && value->text) absl::StrAppend(&key, " \"", *value->text, "\"");
    if (value && value->node) absl::StrAppend(&key, " ", value->node->id);
    if (!value) key += " -";
  }
  if (function.random) {
    Argument& seed = arguments.back();
    if (seed.given &&
        (seed.literal == nullptr || !std::holds_alternative<int64_t>(*seed.literal))) {
      return ErrorAt(syntax.column,
                     absl::StrCat(Text(function.name), ": seed: expected an integer constant"));
    }
    draw_sources_.push_back(MakeDrawSource(syntax, function, seed, &key));
    // The same seed draws anew in another stage.
    absl::StrAppend(&key, " in ", stage_);
    seed.draws = &draw_sources_.back();
    // Every row has its own.
    batch |= batched_;
  }
  if (function.bind_files != nullptr && files_ == nullptr) {
    return ErrorAt(syntax.column, absl::StrCat(Text(function.name),
                                               ": no files can be read where this is computed"));
  }
  auto bound = function.bind_files != nullptr ? function.bind_files(arguments, *files_)
                                              : function.bind(arguments);
  if (!bound.ok()) {
    return ErrorAt(syntax.column,
                   absl::StrCat(Text(function.name), ": ", std::string(bound.status().message())));
  }
  const auto elements = NumElements(bound->type.shape);
  bool unknown = false;
  for (const int64_t size : bound->type.shape) unknown |= size == kUnknownSize;
  if (!unknown && (!elements || *elements > kMaxRowElements)) {
    return ErrorAt(syntax.column, absl::StrCat(Text(function.name), ": more than ", kMaxRowElements,
                                               " elements in a row: ", TypeToString(bound->type)));
  }
  std::vector<const Node*> tensors;
  for (const int position : bound->tensor_arguments) {
    if (position < 0 || position >= static_cast<int>(values.size()) || !values[position] ||
        values[position]->node == nullptr) {
      return ErrorAt(
          syntax.column,
          absl::StrCat(Text(function.name), ": expected a tensor for argument ", position + 1));
    }
    const Node* node = values[position]->node;
    // A literal has a type as soon as a kernel sees it.
    if (node->weak) {
      auto strong = graph_.Cast(node, node->type.dtype);
      if (!strong.ok()) return At(syntax, strong.status());
      node = *strong;
    }
    tensors.push_back(node);
  }
  if (bound->draws) {
    auto identity = graph_.Identity();
    if (!identity.ok()) return At(syntax, identity.status());
    tensors.push_back(*identity);
  }
  auto node = graph_.Row(std::move(*bound), std::move(tensors), key);
  if (!node.ok()) return At(syntax, node.status());
  return Value{*node, batch, {}};
}

Typer::Result Typer::Bind(const Syntax& syntax, const ViewFunction& function,
                          const std::vector<std::optional<Value>>& values) {
  const Value& first = *values[0];
  if (first.node == nullptr || first.node->type.dtype == DType::kString || !first.node->fixed()) {
    return ErrorAt(syntax.column,
                   absl::StrCat(Text(function.name), ": expected a tensor of known sizes, found ",
                                Shown(first)));
  }
  if (first.node->elements() > kMaxViewElements) {
    return ErrorAt(syntax.column, absl::StrCat(Text(function.name), ": more than ",
                                               kMaxViewElements, " elements: ", Shown(first)));
  }
  std::vector<Argument> arguments;
  for (const auto& value : values) arguments.push_back(ToArgument(value));
  auto bound = function.bind(arguments, first.batch_axis);
  if (!bound.ok()) {
    return ErrorAt(syntax.column,
                   absl::StrCat(Text(function.name), ": ", std::string(bound.status().message())));
  }
  auto node = graph_.View(first.node, bound->shape, std::move(bound->source));
  if (!node.ok()) return At(syntax, node.status());
  return Value{*node, first.batch_axis, {}};
}

Typer::Result Typer::Apply(const Syntax& syntax, const ElementwiseFunction& function,
                           std::vector<Value> values) {
  const std::string name = Text(function.name);
  const bool select = function.rule == TypeRule::kSelect;
  bool batch = false;
  for (const Value& value : values) {
    if (value.node == nullptr || value.node->type.dtype == DType::kString) {
      return ErrorAt(syntax.column, absl::StrCat(name, ": expected numbers, found ", Shown(value)));
    }
    if (value.node->type.dtype == DType::kFloat16 || value.node->type.dtype == DType::kBfloat16) {
      return ErrorAt(syntax.column, absl::StrCat(name, ": nothing is computed in ",
                                                 Text(DTypeName(value.node->type.dtype)),
                                                 ": cast to it last, found ", Shown(value)));
    }
    batch |= value.batch_axis;
  }

  // The result's shape. Axes are aligned at the end, so behind a batch every other argument must
  // have fewer axes than the batch axis is away, or as many with a leading axis of one.
  Shape shape;
  if (batch) {
    size_t rank = 0;
    for (const Value& value : values) {
      if (value.batch_axis) rank = std::max(rank, value.node->type.shape.size());
    }
    for (Value& value : values) {
      const Shape& own = value.node->type.shape;
      bool reaches = value.batch_axis ? own.size() != rank : own.size() > rank;
      if (!value.batch_axis && own.size() == rank + 1 && own[0] == 1) {
        auto row = graph_.View(value.node, Shape(own.begin() + 1, own.end()), {});
        if (!row.ok()) return At(syntax, row.status());
        value.node = *row;
        reaches = false;
      }
      if (reaches) {
        return ErrorAt(
            syntax.column,
            absl::StrCat(name, ": broadcasting ", Shown(values[0]), " with ", Shown(values.back()),
                         " reaches the batch axis, but rows must be independent: give both the "
                         "same number of axes (x[:, None]) or compute this before batch"));
      }
    }
  }
  for (const Value& value : values) {
    auto joined = BroadcastShapes(shape, value.node->type.shape);
    if (!joined) {
      return ErrorAt(syntax.column, absl::StrCat(name, ": shapes do not broadcast: ",
                                                 Shown(values[0]), " and ", Shown(value)));
    }
    shape = *joined;
  }
  const auto elements = NumElements(shape);
  bool unknown = false;
  for (const int64_t size : shape) unknown |= size == kUnknownSize;
  if (!unknown && (!elements || *elements > kMaxRowElements)) {
    return ErrorAt(syntax.column, absl::StrCat(name, ": more than ", kMaxRowElements,
                                               " elements in a row: ", ShapeToString(shape)));
  }

  // The type it is computed in, and the result's.
  std::vector<Operand> operands;
  for (size_t i = select ? 1 : 0; i < values.size(); ++i) {
    operands.push_back({values[i].node->type.dtype, values[i].node->weak});
  }
  bool weak = false;
  const auto promoted = PromoteAll(operands, weak);
  if (!promoted) {
    return ErrorAt(syntax.column, absl::StrCat(name, ": no common type of ", Shown(values[0]),
                                               " and ", Shown(values.back())));
  }
  DType compute = *promoted;
  DType result = compute;
  const ElementwiseFunction* actual = &function;
  const auto refuse = [&](const char* expected) {
    return ErrorAt(syntax.column,
                   absl::StrCat(name, ": expected ", expected, ", found ", Shown(values.back())));
  };
  switch (function.rule) {
    case TypeRule::kPromote:
      // Flags add as "or" and multiply as "and".
      if (compute == DType::kBool && (name == "add" || name == "multiply")) {
        actual = &std::get<ElementwiseFunction>(
            FindFunction(name == "add" ? "bitwise_or" : "bitwise_and")->function);
      }
      break;
    case TypeRule::kNumber:
      if (compute == DType::kBool) return refuse("numbers");
      break;
    case TypeRule::kIntegral:
      if (IsFloating(compute)) return refuse("integers or bools");
      // The opposite of a flag: turning over all of its bits would not give one.
      if (compute == DType::kBool && name == "invert") {
        auto no = graph_.Constant({DType::kBool, {}}, {0}, false);
        if (!no.ok()) return At(syntax, no.status());
        return Apply(syntax, std::get<ElementwiseFunction>(FindFunction("equal")->function),
                     {values[0], Value{*no, false, {}}});
      }
      break;
    case TypeRule::kRound:
      if (!IsFloating(compute)) return values[0];
      break;
    case TypeRule::kFloating:
      result = compute = ToFloating(compute);
      break;
    case TypeRule::kDivide:
      result = compute = IsFloating(compute) ? compute : DType::kFloat64;
      break;
    case TypeRule::kCompare:
      result = DType::kBool;
      weak = false;
      break;
    case TypeRule::kSelect:
      break;
    case TypeRule::kCast: {
      auto cast = graph_.Cast(values[0].node, function.cast_to);
      if (!cast.ok()) return At(syntax, cast.status());
      return Value{*cast, batch, {}};
    }
  }

  std::vector<const Node*> nodes;
  const Node* ragged = nullptr;
  for (size_t i = 0; i < values.size(); ++i) {
    const Node* node = values[i].node;
    const DType wanted = select && i == 0 ? DType::kBool : compute;
    // A weak integer must fit; comparing with one that does not is still exact in a wider type.
    if (node->weak && IsInteger(wanted) && !FitsInteger(*node, wanted)) {
      if (function.rule != TypeRule::kCompare) {
        return ErrorAt(syntax.column,
                       absl::StrCat(name, ": ", ScalarInteger(*node), " is out of the range of ",
                                    Text(DTypeName(wanted))));
      }
      compute = DType::kInt64;
      nodes.clear();
      i = static_cast<size_t>(-1);
      continue;
    }
    auto cast = graph_.Cast(node, wanted);
    if (!cast.ok()) return At(syntax, cast.status());
    node = *cast;
    if (unknown) {
      const bool repeats = node->is_constant() && RepeatsInside(node->type.shape, shape);
      if (!repeats &&
          (node->type.shape != shape || (ragged != nullptr && ragged != node->sizes_of))) {
        return ErrorAt(syntax.column,
                       absl::StrCat(name, ": ", Shown(values[i]),
                                    ": a tensor whose sizes only the data tells goes with "
                                    "constants along its last axes and with what was computed from "
                                    "it; resize or crop it first"));
      }
      if (!repeats) ragged = node->sizes_of;
    } else if (node->elements() != *elements && !(node->is_constant() && node->elements() == 1)) {
      auto wide = graph_.Broadcast(node, shape);
      if (!wide.ok()) return At(syntax, wide.status());
      node = *wide;
    }
    nodes.push_back(node);
  }
  auto node = graph_.Elementwise(*actual, std::move(nodes), {result, shape});
  if (!node.ok()) return At(syntax, node.status());
  if (weak && (*node)->is_constant() && shape.empty()) {
    node = graph_.Constant((*node)->type, (*node)->data, true);
    if (!node.ok()) return At(syntax, node.status());
  }
  return Value{*node, batch, {}};
}

}  // namespace penstock::expr
