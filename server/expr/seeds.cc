#include "server/expr/seeds.h"

#include <algorithm>
#include <map>
#include <variant>

#include "absl/strings/str_cat.h"
#include "server/expr/function.h"
#include "server/expr/syntax.h"

namespace penstock::expr {
namespace {

bool IsRandom(const Syntax& syntax) {
  if (syntax.kind != Syntax::Kind::kCall) return false;
  const FunctionEntry* const entry = FindFunction(syntax.text);
  if (entry == nullptr) return false;
  const auto* const function = std::get_if<RowFunction>(&entry->function);
  return function != nullptr && function->random;
}

bool CallsRandom(const Syntax& syntax) {
  return IsRandom(syntax) ||
         std::any_of(syntax.children.begin(), syntax.children.end(), [](const SyntaxPtr& child) {
           return child != nullptr && CallsRandom(*child);
         });
}

// What `x = TEXT` is, or TEXT where it is an assignment already.
absl::StatusOr<Assignment> Parse(std::string_view text, size_t* before) {
  *before = 0;
  auto parsed = ParseAssignment(text);
  if (parsed.ok()) return parsed;
  constexpr std::string_view kName = "x = ";
  *before = kName.size();
  return ParseAssignment(std::string(kName).append(text));
}

// By the place of its closing parenthesis, which calls lack a seed, and what stands between that
// and their last argument.
void FindCalls(const Syntax& syntax, std::map<size_t, std::string_view>* places) {
  for (const SyntaxPtr& child : syntax.children) {
    if (child != nullptr) FindCalls(*child, places);
  }
  // An operator has no parenthesis.
  if (!IsRandom(syntax) || syntax.end_column == 0) return;
  const FunctionEntry* const entry = FindFunction(syntax.text);
  if (syntax.children.size() >= entry->parameters.size()) return;
  for (const std::string& keyword : syntax.keywords) {
    if (keyword == entry->parameters.back().name) return;
  }
  places->emplace(static_cast<size_t>(syntax.end_column - 1),
                  syntax.children.empty() || syntax.ends_in_comma ? "" : ", ");
}

}  // namespace

std::string WithSeeds(std::string_view text, const std::function<int64_t()>& draw) {
  std::string result(text);
  size_t before = 0;
  const auto parsed = Parse(text, &before);
  if (!parsed.ok()) return result;
  std::map<size_t, std::string_view> places;
  FindCalls(*parsed->value, &places);
  // From the last on, so that the others stay where they are; drawn from the first on.
  std::map<size_t, std::string> seeds;
  for (const auto& [place, comma] : places)
    seeds[place - before] = absl::StrCat(std::string(comma), "seed=", draw());
  for (auto seed = seeds.rbegin(); seed != seeds.rend(); ++seed)
    result.insert(seed->first, seed->second);
  return result;
}

bool CallsRandom(std::string_view text) {
  size_t before = 0;
  const auto parsed = Parse(text, &before);
  return parsed.ok() && CallsRandom(*parsed->value);
}

}  // namespace penstock::expr
