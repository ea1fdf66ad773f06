// Gives every expression of one map its type and adds it to the graph.
//
// Threads:  one thread, while a program is compiled.
// Owns:     the names and literals of one map; nodes belong to the graph.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/expr/graph.h"
#include "server/expr/picks.h"
#include "server/expr/program.h"
#include "server/expr/syntax.h"

namespace penstock::expr {

// What an expression stands for: a tensor, or text that only an argument can be.
struct Value {
  const Node* node = nullptr;
  // Whether the text sees the batch as a leading axis, which the node's type leaves out.
  bool batch_axis = false;
  std::optional<std::string> text;
  // Of a feature whose rows are packed (RowForm): its type. Nothing can be computed of it.
  const TensorType* packed = nullptr;
};

// A feature by name, as a map receives and returns it.
struct NamedValue {
  std::string name;
  Value value;
};

class Typer {
 public:
  // `features` must outlive it. `files`: of functions that read them; null: none.
  Typer(Graph& graph, const std::vector<NamedValue>& features, std::string_view stage, bool batched,
        FileSystem* files);

  absl::Status AddConstant(const NamedConstant& constant);
  // `let` and `out`. Errors begin with "column C: ".
  absl::Status AddLet(std::string_view text);
  absl::StatusOr<NamedValue> Output(std::string_view text);

 private:
  using Result = absl::StatusOr<Value>;

  Result Type(const Syntax& syntax);
  Result TypeName(const Syntax& syntax);
  Result TypeFeature(const Syntax& syntax);
  Result TypeList(const Syntax& syntax);
  Result TypeTexts(const Syntax& syntax);
  absl::StatusOr<const Node*> ConstantStrings(const NamedConstant& constant);
  Result TypeCall(const Syntax& syntax);
  Result TypeSubscript(const Syntax& syntax);
  // An integer of the data in a subscript, which is added to `of_data`: its place there. Nothing
  // for a constant.
  absl::StatusOr<std::optional<size_t>> IntegerOfData(const Syntax& syntax, const Value& value,
                                                      std::vector<const Node*>* of_data);
  absl::StatusOr<Pick> ReadSlice(const Syntax& item, std::vector<const Node*>* of_data);
  absl::StatusOr<Pick> ReadIndex(const Syntax& item, std::vector<const Node*>* of_data);
  // What the subscript takes from each axis of one row, in order, and the axes that it adds.
  absl::StatusOr<std::vector<Pick>> ReadPicks(const Syntax& syntax, const Value& base,
                                              std::vector<const Node*>* of_data);
  Result Apply(const Syntax& syntax, const ElementwiseFunction& function,
               std::vector<Value> arguments);
  Result CompareMixedSigns(const Syntax& syntax, const ElementwiseFunction& function,
                           std::vector<Value> values);
  // The operands as the function computes them: cast, and broadcast to the shape of the result.
  absl::StatusOr<std::vector<const Node*>> Operands(const Syntax& syntax,
                                                    const ElementwiseFunction& function, DType type,
                                                    const Shape& shape,
                                                    const std::vector<Value>& values);
  Result Bind(const Syntax& syntax, const RowFunction& function,
              const std::vector<std::optional<Value>>& arguments);
  Result Bind(const Syntax& syntax, const ViewFunction& function,
              const std::vector<std::optional<Value>>& arguments);
  // A kernel's call for `value` and `others`. `key` tells it from others of that name.
  Result BindRow(const Syntax& syntax, std::string_view name, BoundRowFunction bound,
                 const Value& value, std::string_view key, std::vector<const Node*> others = {});

  // Where a call of a random function draws from, and what tells it from other calls.
  DrawSource MakeDrawSource(const Syntax& syntax, const RowFunction& function, const Argument& seed,
                            std::string* key);
  // The argument as a function's bind() wants it, with its literal if it is one.
  Argument ToArgument(const std::optional<Value>& value);
  // Integers of a constant list, or of one number.
  absl::StatusOr<std::vector<int64_t>> Integers(const Syntax& syntax, const Value& value) const;
  std::vector<std::string> KnownNames() const;
  // A weak one, of a type of 8 bytes.
  absl::StatusOr<const Node*> Scalar(DType dtype, uint64_t bits);

  Graph& graph_;
  const std::vector<NamedValue>& features_;
  const std::string stage_;
  const bool batched_;
  FileSystem* const files_;
  int calls_without_seed_ = 0;
  std::string assigned_;  // the name that the expression being typed is given
  std::map<std::string, Value, std::less<>> constants_;
  std::map<std::string, Value, std::less<>> lets_;
  std::map<std::string, bool, std::less<>> outputs_;
  std::deque<Literal> literals_;
  std::deque<DrawSource> draw_sources_;
};

// The type as the text sees it: "(?, 194)" for rows of (194,) behind a batch.
std::string Shown(const Value& value);

// Refuses to compute of a packed feature.
absl::Status RefusePacked(const Syntax& syntax, const Value& value);

// An error for a row of more than kMaxRowElements.
absl::Status CheckRowElements(const Syntax& syntax, std::string_view function,
                              const TensorType& type);

// Whether another arrangement of a tensor's elements is worked out while the program is compiled.
// Those of others are made row by row.
bool IsViewable(const Node& node);

// Axes of operands are aligned at the end, so behind a batch all that have its axis must have as
// many, and no other may reach it.
absl::Status CheckRowsApart(const Syntax& syntax, std::string_view name,
                            const std::vector<Value>& values);

// Adds the address to an error unless it has one.
absl::Status At(const Syntax& syntax, const absl::Status& status);

}  // namespace penstock::expr
