// The text of an assignment as a tree.
//
// Threads:  parsing is a pure function; trees are plain values.
// Limits:   kMaxTextBytes of text, kMaxDepth of nesting, kMaxListItems items in a list.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::expr {

inline constexpr size_t kMaxTextBytes = 64 << 10;
inline constexpr int kMaxDepth = 200;
inline constexpr size_t kMaxListItems = 64 << 10;

struct Syntax;
using SyntaxPtr = std::unique_ptr<Syntax>;

struct Syntax {
  enum class Kind : uint8_t {
    kInteger,  // integer, negative
    kFloat,    // number
    kText,     // text
    kFlag,     // integer 0 or 1
    kList,     // children
    kName,     // text
    kCall,     // text: the function; children: arguments; keywords: their names, "" for positional
               // ones
    kSubscript,  // children[0] is the value, the others the items
    kSlice,      // children: start, stop, step, each null when left out (only as an item)
    kEllipsis,   // (only as an item)
    kNewAxis,    // None (only as an item)
  };
  Kind kind = Kind::kInteger;
  int column = 0;  // of the first character in the text, from 1
  // kCall, of one that is written as a call: the column of its last parenthesis, and whether a
  // comma stands in front of it.
  int end_column = 0;
  bool ends_in_comma = false;
  uint64_t integer = 0;
  bool negative = false;
  double number = 0;
  std::string text;
  std::vector<SyntaxPtr> children;
  std::vector<std::string> keywords;
};

// `name = expression`.
struct Assignment {
  std::string name;
  SyntaxPtr value;
};

// An operator becomes a call of the function that NumPy names so ("a + b" is add(a, b)). Errors are
// InvalidArgument of the form "column 7: expected ')', found end of text".
absl::StatusOr<Assignment> ParseAssignment(std::string_view text);

// InvalidArgument "column C: MESSAGE".
absl::Status ErrorAt(int column, const std::string& message);

}  // namespace penstock::expr
