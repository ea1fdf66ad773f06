// What functions say of themselves names functions that there are.
#include <string>
#include <variant>

#include "server/expr/function.h"
#include "tests/support/catch.h"

namespace penstock::expr {
namespace {

TEST_CASE(
    "What computes flags and strings in a function's place is there, and takes its arguments") {
  int of_flags = 0, of_strings = 0;
  for (const FunctionEntry* const entry : AllFunctions()) {
    const auto* const function = std::get_if<ElementwiseFunction>(&entry->function);
    if (function == nullptr) continue;
    INFO(std::string(function->name));
    if (!function->of_flags.empty()) {
      ++of_flags;
      const FunctionEntry* const other = FindFunction(function->of_flags);
      REQUIRE(other != nullptr);
      const auto* const elementwise = std::get_if<ElementwiseFunction>(&other->function);
      REQUIRE(elementwise != nullptr);
      // With False behind, where it decides by the type of one alone.
      const bool adds_false = function->rule == TypeRule::kIntegral;
      CHECK(elementwise->num_arguments == function->num_arguments + (adds_false ? 1 : 0));
    }
    if (!function->of_strings.empty()) {
      ++of_strings;
      const FunctionEntry* const other = FindFunction(function->of_strings);
      REQUIRE(other != nullptr);
      CHECK(static_cast<int>(other->parameters.size()) >= function->num_arguments);
    }
  }
  CHECK(of_flags == 3);
  CHECK(of_strings == 8);
}

}  // namespace
}  // namespace penstock::expr
