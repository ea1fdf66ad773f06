#include "server/expr/file_arguments.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/expr/function.h"
#include "server/expr/syntax.h"

namespace penstock::expr {
namespace {

constexpr std::string_view kContent = "content";

std::map<std::string_view, FileArgument>& Registry() {
  static auto& registry = *new std::map<std::string_view, FileArgument>;
  return registry;
}

// One call of such a function, which outlives what was parsed.
struct Call {
  std::optional<std::string> path;  // where it is a text
  int path_column = 0;              // of that, in the text
  bool content_is_text = false;
  bool has_content = false;
  size_t end = 0;  // of its last parenthesis, in the text
  bool needs_comma = false;
};

void FindCalls(const Syntax& syntax, std::vector<std::pair<Call, FileArgument>>* calls) {
  for (const SyntaxPtr& child : syntax.children)
    if (child != nullptr) FindCalls(*child, calls);
  if (syntax.kind != Syntax::Kind::kCall || syntax.end_column == 0) return;
  const auto found = Registry().find(syntax.text);
  const FunctionEntry* const entry = FindFunction(syntax.text);
  if (found == Registry().end() || entry == nullptr) return;
  Call call;
  call.end = static_cast<size_t>(syntax.end_column - 1);
  call.needs_comma = !syntax.children.empty() && !syntax.ends_in_comma;
  const auto& parameters = entry->parameters;
  for (size_t i = 0; i < syntax.children.size(); ++i) {
    const std::string& keyword = i < syntax.keywords.size() ? syntax.keywords[i] : "";
    const std::string_view name = !keyword.empty()        ? std::string_view(keyword)
                                  : i < parameters.size() ? std::string_view(parameters[i].name)
                                                          : "";
    const Syntax* const child = syntax.children[i].get();
    const bool is_text = child != nullptr && child->kind == Syntax::Kind::kText;
    if (name == parameters[static_cast<size_t>(found->second.place)].name) {
      call.path = is_text ? std::optional(child->text) : std::nullopt;
      call.path_column = is_text ? child->column : 0;
    } else if (name == kContent) {
      call.has_content = true;
      call.content_is_text = is_text;
    }
  }
  calls->emplace_back(call, found->second);
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

// Most texts have no such call, and are not parsed.
bool MayCall(std::string_view text) {
  for (const auto& [name, argument] : Registry())
    if (text.find(name) != std::string_view::npos) return true;
  return false;
}

// The calls in a text, which may be an expression alone; their places are behind the first `before`
// bytes of what was parsed. None, where it cannot be parsed.
std::vector<std::pair<Call, FileArgument>> CallsIn(std::string_view text, size_t* before) {
  std::vector<std::pair<Call, FileArgument>> calls;
  if (!MayCall(text)) return calls;
  const auto parsed = Parse(text, before);
  if (parsed.ok()) FindCalls(*parsed->value, &calls);
  return calls;
}

// Where the text in quotes ends that begins at `from`.
size_t BehindQuotes(std::string_view text, size_t from) {
  const char quote = text[from];
  for (size_t i = from + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      return i + 1;
    }
  }
  return text.size();
}

}  // namespace

FileArgumentRegistration::FileArgumentRegistration(std::string_view function,
                                                   const FileArgument& argument) {
  Registry().emplace(function, argument);
}

absl::StatusOr<std::string> WithContents(std::string_view text, FileSystem& files) {
  std::string result(text);
  size_t before = 0;
  const auto calls = CallsIn(text, &before);
  // From the last on, so that the others stay where they are.
  std::map<size_t, std::string, std::greater<size_t>> added;
  for (const auto& [call, argument] : calls) {
    if (call.has_content || !call.path || call.path->empty()) continue;
    const auto content = argument.content_of(*call.path, files);
    if (!content.ok()) return content.status();
    added[call.end - before] =
        absl::StrCat(call.needs_comma ? ", " : "", "content=\"", *content, "\"");
  }
  for (const auto& [place, argument] : added) result.insert(place, argument);
  return result;
}

std::string WithoutFilePaths(std::string_view text) {
  std::string result(text);
  size_t before = 0;
  const auto calls = CallsIn(text, &before);
  std::map<size_t, size_t, std::greater<size_t>> gone;
  for (const auto& [call, argument] : calls) {
    if (!call.content_is_text || !call.path) continue;
    const size_t from = static_cast<size_t>(call.path_column - 1) - before;
    gone[from] = BehindQuotes(text, from);
  }
  for (const auto& [from, end] : gone) result.erase(from, end - from);
  return result;
}

}  // namespace penstock::expr
