// The typed form of a chain of maps: a graph of values without cycles, each computed once (common
// subexpressions are one node), constants folded, views of views composed.
//
// Threads:  one thread, while a program is compiled.
// Owns:     its nodes, until destruction.
// Limits:   kMaxNodes nodes; kMaxRowElements elements in one row of one value; kMaxConstantBytes in
//           all constants.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/signature.h"
#include "server/expr/function.h"

namespace penstock::expr {

inline constexpr int kMaxNodes = 10'000;
inline constexpr int64_t kMaxRowElements = int64_t{1} << 28;
inline constexpr int64_t kMaxViewElements = int64_t{1} << 24;
inline constexpr int64_t kMaxConstantBytes = int64_t{1} << 28;

// A std::string_view for absl::StrCat, whose own string_view is another type in Debian's build.
inline std::string Text(std::string_view text) { return std::string(text); }

struct Node {
  enum class Kind : uint8_t { kInput, kConstant, kElementwise, kView, kRow };

  Kind kind = Kind::kInput;
  int id = 0;       // arguments have lower ones
  TensorType type;  // of one row
  std::vector<const Node*> arguments;

  int input = 0;              // kInput: which
  std::vector<uint8_t> data;  // kConstant: the elements
  bool weak = false;          // kConstant: a scalar without a type of its own

  // kElementwise. Every argument has as many elements as the result, or is a constant of one.
  // Except for a cast's, a comparison's and the condition of a choice, types are equal.
  const ElementwiseFunction* function = nullptr;

  // kView: for each element which one of the argument it is; empty: the same order under another
  // shape.
  std::vector<int32_t> source;

  BoundRowFunction row;  // kRow
  std::string name;      // kRow: the function's

  // The node whose sizes are those of this one, where only the data tells them; null where they are
  // known. Equal ones mean equal sizes.
  const Node* sizes_of = nullptr;

  // The unpacking of bits from which, with constants, this value is computed; null when anything
  // else takes part.
  const Node* bits = nullptr;

  bool is_constant() const { return kind == Kind::kConstant; }
  bool fixed() const { return NumElements(type.shape).has_value(); }
  // REQUIRES: fixed().
  int64_t elements() const { return *NumElements(type.shape); }
};

class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  absl::StatusOr<const Node*> Input(int input, const TensorType& type);
  absl::StatusOr<const Node*> Constant(const TensorType& type, std::vector<uint8_t> data,
                                       bool weak);
  // The same value of another type. Weak: the constant keeps no type of its own.
  absl::StatusOr<const Node*> Cast(const Node* value, DType dtype);
  // REQUIRES: arguments as Node::function says.
  absl::StatusOr<const Node*> Elementwise(const ElementwiseFunction& function,
                                          std::vector<const Node*> arguments,
                                          const TensorType& type);
  // REQUIRES: value->fixed(); as many elements as `shape` in `source` unless it is empty.
  absl::StatusOr<const Node*> View(const Node* value, const Shape& shape,
                                   std::vector<int32_t> source);
  // Repeats axes of one element, as NumPy's broadcast_to.
  absl::StatusOr<const Node*> Broadcast(const Node* value, const Shape& shape);
  // `key`: of the function, whose name it begins with, and its literals. `sizes_of`: as of a node,
  // where it is another's; null: its own.
  absl::StatusOr<const Node*> Row(BoundRowFunction row, std::vector<const Node*> arguments,
                                  const std::string& key, const Node* sizes_of = nullptr);

  // The identities of the rows, which are the input behind all others; before it is asked for,
  // their number must be set.
  void set_identity_input(int input) { identity_input_ = input; }
  absl::StatusOr<const Node*> Identity();
  bool has_identity() const { return identity_ != nullptr; }

  // In order of their ids.
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }

 private:
  // Of values that were already rearranged alike: those that are used many times are looked at
  // once.
  using Views = std::map<const Node*, const Node*>;
  absl::StatusOr<const Node*> View(const Node* value, const Shape& shape,
                                   std::vector<int32_t> source, Views* views);
  absl::StatusOr<const Node*> Add(std::unique_ptr<Node> node, const std::string& suffix);

  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<std::string, const Node*> known_;
  int64_t constant_bytes_ = 0;
  int identity_input_ = 0;
  const Node* identity_ = nullptr;
};

}  // namespace penstock::expr
