#include "server/expr/typer.h"

#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"
#include "server/expr/constant.h"
#include "server/expr/constant_texts.h"

namespace penstock::expr {

absl::Status At(const Syntax& syntax, const absl::Status& status) {
  if (status.ok() || absl::StartsWith(status.message(), "column ")) return status;
  return ErrorAt(syntax.column, std::string(status.message()));
}

std::string Shown(const Value& value) {
  if (value.node == nullptr) return "a text";
  if (value.packed != nullptr) return TypeToString(*value.packed);
  TensorType type = value.node->type;
  if (value.batch_axis) type.shape.insert(type.shape.begin(), kUnknownSize);
  return TypeToString(type);
}

absl::Status RefusePacked(const Syntax& syntax, const Value& value) {
  if (value.packed == nullptr) return absl::OkStatus();
  return ErrorAt(syntax.column, absl::StrCat("expected dense values, found ", Shown(value),
                                             ", which can only be handed on as it is"));
}

absl::Status CheckRowElements(const Syntax& syntax, std::string_view function,
                              const TensorType& type) {
  if (HasUnknownSize(type.shape)) return absl::OkStatus();
  if (FitsRow(type.shape)) return absl::OkStatus();
  return ErrorAt(syntax.column, absl::StrCat(Text(function), ": more than ", kMaxRowElements,
                                             " elements in a row: ", TypeToString(type)));
}

bool IsViewable(const Node& node) {
  return node.type.dtype != DType::kString && node.fixed() && node.elements() <= kMaxViewElements;
}

Typer::Typer(Graph& graph, const std::vector<NamedValue>& features, std::string_view stage,
             bool batched, FileSystem* files)
    : graph_(graph), features_(features), stage_(stage), batched_(batched), files_(files) {}

absl::StatusOr<const Node*> Typer::ConstantStrings(const NamedConstant& constant) {
  return graph_.Row(BindTexts(constant.shape, constant.strings), {},
                    absl::StrCat("strings of ", stage_, "/", constant.name));
}

absl::Status Typer::AddConstant(const NamedConstant& constant) {
  Value value;
  const bool is_string = !constant.strings.empty();
  if (is_string && constant.shape.empty()) {
    value.text = constant.strings.front();
  } else {
    auto node = is_string ? ConstantStrings(constant) : MakeConstant(graph_, constant);
    if (!node.ok()) return node.status();
    value.node = *node;
  }
  if (!constants_.emplace(constant.name, std::move(value)).second) {
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
      constexpr uint64_t kLeast = uint64_t{1} << 63;
      if (syntax.negative && syntax.integer > kLeast) {
        return ErrorAt(syntax.column, absl::StrCat("number out of range: -", syntax.integer));
      }
      const bool large = !syntax.negative && syntax.integer >= kLeast;
      auto node = Scalar(large ? DType::kUint64 : DType::kInt64,
                         syntax.negative ? 0 - syntax.integer : syntax.integer);
      if (!node.ok()) return At(syntax, node.status());
      return Value{*node, false, {}};
    }
    case Syntax::Kind::kFloat: {
      auto node = Scalar(DType::kFloat64, std::bit_cast<uint64_t>(syntax.number));
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

absl::StatusOr<const Node*> Typer::Scalar(DType dtype, uint64_t bits) {
  std::vector<uint8_t> data(sizeof(bits));
  std::memcpy(data.data(), &bits, sizeof(bits));
  return graph_.Constant({dtype, {}}, std::move(data), true);
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

namespace {

// The sizes of a list whose first item, or that of the first list in it and so on, is a text.
Shape ShapeOfTexts(const Syntax& syntax) {
  Shape shape;
  for (const Syntax* at = &syntax; at->kind == Syntax::Kind::kList; at = at->children[0].get())
    shape.push_back(static_cast<int64_t>(at->children.size()));
  return shape;
}

// The texts of a list, and those of lists in it, in order; false where they are not of that shape.
// `shape`: of the list, an axis at least.
bool ReadTexts(const Syntax& syntax, absl::Span<const int64_t> shape,
               std::vector<std::string>* texts) {
  if (shape[0] != static_cast<int64_t>(syntax.children.size())) return false;
  for (const SyntaxPtr& child : syntax.children) {
    if (shape.size() > 1) {
      if (child->kind != Syntax::Kind::kList || !ReadTexts(*child, shape.subspan(1), texts))
        return false;
    } else if (child->kind == Syntax::Kind::kText) {
      texts->push_back(child->text);
    } else {
      return false;
    }
  }
  return true;
}

// Whether the first item of a list, or of the first list in it, is a text.
bool HoldsTexts(const Syntax& syntax) {
  if (syntax.children.empty()) return false;
  const Syntax& first = *syntax.children[0];
  return first.kind == Syntax::Kind::kList ? HoldsTexts(first) : first.kind == Syntax::Kind::kText;
}

}  // namespace

Typer::Result Typer::TypeTexts(const Syntax& syntax) {
  const Shape shape = ShapeOfTexts(syntax);
  std::vector<std::string> texts;
  if (!ReadTexts(syntax, shape, &texts)) {
    return ErrorAt(syntax.column, "expected a list of texts, or of lists of as many texts");
  }
  std::string key = "texts";
  for (const std::string& text : texts) absl::StrAppend(&key, " ", text.size(), ":", text);
  auto node = graph_.Row(BindTexts(shape, std::move(texts)), {}, key);
  if (!node.ok()) return At(syntax, node.status());
  return Value{*node, false, {}};
}

Typer::Result Typer::TypeList(const Syntax& syntax) {
  if (HoldsTexts(syntax)) return TypeTexts(syntax);
  NamedConstant list;
  list.has_shape = true;
  std::vector<const Node*> items;
  const Syntax* large = nullptr;
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
    if (node->type.dtype == DType::kUint64 && node->weak) large = child.get();
    items.push_back(node);
  }
  if (items.empty()) return ErrorAt(syntax.column, "expected at least one item in a list");
  if (large != nullptr && !floating) {
    return ErrorAt(large->column,
                   absl::StrCat("number out of range of int64 in a list: ", large->integer));
  }
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

}  // namespace penstock::expr
