// f(x, axis=0): which function it is, its arguments, and a row function or a view bound to them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/expr/constant.h"
#include "server/expr/typer.h"

namespace penstock::expr {
namespace {

// Comparisons, `+` and `where` of strings are other functions.
const FunctionEntry* OfStrings(const FunctionEntry* entry,
                               const std::vector<std::optional<Value>>& arguments) {
  const auto* const function = std::get_if<ElementwiseFunction>(&entry->function);
  if (function == nullptr || function->of_strings.empty()) return entry;
  // A choice between two texts is one, too.
  const bool takes_texts = function->rule == TypeRule::kSelect;
  const bool of_strings =
      std::any_of(arguments.begin(), arguments.end(), [&](const std::optional<Value>& argument) {
        if (!argument) return false;
        return argument->node == nullptr ? takes_texts
                                         : argument->node->type.dtype == DType::kString;
      });
  return of_strings ? FindFunction(function->of_strings) : entry;
}

}  // namespace

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
    if (absl::Status status = RefusePacked(child, *value); !status.ok()) return status;
    arguments[position] = std::move(*value);
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].required && !arguments[i].has_value()) {
      return ErrorAt(syntax.column, absl::StrCat("missing argument \"", parameters[i].name,
                                                 "\": ", Text(entry->signature())));
    }
  }
  entry = OfStrings(entry, arguments);
  arguments.resize(entry->parameters.size());
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
  argument.texts = node.row.texts;
  if (!node.is_constant()) return argument;
  argument.constant = &node.data;
  if (node.type.shape.empty()) {
    if (node.type.dtype == DType::kBool) {
      literals_.emplace_back(node.data[0] != 0);
    } else if (IsFloating(node.type.dtype)) {
      literals_.emplace_back(ScalarValue(node));
    } else if (FitsInteger(node, DType::kInt64)) {
      literals_.emplace_back(ScalarInteger(node));
    } else {
      return argument;
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
    // With its length, so that no other texts look like it.
    if (value && value->text) absl::StrAppend(&key, " t", value->text->size(), ":", *value->text);
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
  if (bound->takes_all_axes && values[bound->tensor_arguments[0]] &&
      values[bound->tensor_arguments[0]]->batch_axis) {
    return ErrorAt(syntax.column,
                   absl::StrCat(Text(function.name),
                                ": expected an axis, as this is computed row by row; "
                                "-1 is the last one"));
  }
  if (absl::Status status = CheckRowElements(syntax, function.name, bound->type); !status.ok())
    return status;
  if (bound->broadcasts && batch) {
    std::vector<Value> operands;
    for (const int position : bound->tensor_arguments) operands.push_back(*values[position]);
    absl::Status status = CheckRowsApart(syntax, function.name, operands);
    if (!status.ok()) return status;
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
  const bool views = first.node != nullptr && IsViewable(*first.node);
  if (first.node == nullptr) {
    return ErrorAt(syntax.column,
                   absl::StrCat(Text(function.name), ": expected a tensor, found ", Shown(first)));
  }
  std::vector<Argument> arguments;
  for (const auto& value : values) arguments.push_back(ToArgument(value));
  const auto refused = [&](const absl::Status& status) {
    return ErrorAt(syntax.column,
                   absl::StrCat(Text(function.name), ": ", std::string(status.message())));
  };
  bool of_data = false, batch = first.batch_axis;
  for (size_t i = 1; i < values.size(); ++i) {
    of_data |= values[i] && values[i]->node && !values[i]->node->is_constant();
    batch |= values[i] && values[i]->batch_axis;
  }
  if (!views || of_data) {
    std::string key;
    for (size_t i = 1; i < values.size(); ++i) {
      absl::StrAppend(&key, " ", values[i] && values[i]->node ? values[i]->node->id : -1);
    }
    auto bound = function.bind_row(arguments, batch);
    if (!bound.ok()) return refused(bound.status());
    std::vector<const Node*> others;
    for (size_t i = 1; i < bound->tensor_arguments.size(); ++i)
      others.push_back(values[bound->tensor_arguments[i]]->node);
    return BindRow(syntax, function.name, *std::move(bound), first, key, std::move(others));
  }
  auto bound = function.bind(arguments, first.batch_axis);
  if (!bound.ok()) return refused(bound.status());
  auto node = graph_.View(first.node, bound->shape, std::move(bound->source));
  if (!node.ok()) return At(syntax, node.status());
  return Value{*node, first.batch_axis, {}};
}

Typer::Result Typer::BindRow(const Syntax& syntax, std::string_view name, BoundRowFunction bound,
                             const Value& value, std::string_view key,
                             std::vector<const Node*> others) {
  if (absl::Status status = CheckRowElements(syntax, name, bound.type); !status.ok()) return status;
  others.insert(others.begin(), value.node);
  auto node = graph_.Row(std::move(bound), std::move(others),
                         absl::StrCat(Text(name), " ", value.node->id, Text(key)));
  if (!node.ok()) return At(syntax, node.status());
  return Value{*node, value.batch_axis, {}};
}

}  // namespace penstock::expr
