#include "server/expr/signature.h"

#include <cstdio>
#include <cstdlib>

namespace penstock::expr {
namespace {

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

// Splits "f(a, b=1, c=[1, 2])" at the commas of its outermost parentheses.
std::vector<SignatureParameter> ParametersOf(std::string_view signature) {
  std::vector<SignatureParameter> parameters;
  const size_t open = signature.find('(');
  if (open == std::string_view::npos || signature.back() != ')') {
    std::fprintf(stderr, "malformed function signature: %.*s\n", static_cast<int>(signature.size()),
                 signature.data());
    std::abort();
  }
  std::string_view rest = signature.substr(open + 1, signature.size() - open - 2);
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i <= rest.size(); ++i) {
    if (i < rest.size()) {
      if (rest[i] == '[' || rest[i] == '(') ++depth;
      if (rest[i] == ']' || rest[i] == ')') --depth;
      if (rest[i] != ',' || depth > 0) continue;
    }
    const std::string_view item = Trim(rest.substr(start, i - start));
    start = i + 1;
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    const bool required = equals == std::string_view::npos;
    parameters.push_back({Trim(item.substr(0, equals)), required,
                          required ? std::string_view() : Trim(item.substr(equals + 1))});
  }
  return parameters;
}

}  // namespace penstock::expr
