// The words of an expression.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::expr {

struct Token {
  enum class Kind : uint8_t { kInteger, kFloat, kText, kName, kSymbol, kEnd };
  Kind kind = Kind::kEnd;
  int column = 0;    // from 1
  std::string text;  // the name, the symbol, or the characters between the quotes
  uint64_t integer = 0;
  double number = 0;

  bool Is(std::string_view symbol) const { return kind == Kind::kSymbol && text == symbol; }
};

// The last token is kEnd. A comment runs from # to the end of its line.
absl::StatusOr<std::vector<Token>> Tokenize(std::string_view text);

// "')'", "name \"x\"", "end of text": a token as messages call it.
std::string Describe(const Token& token);

}  // namespace penstock::expr
