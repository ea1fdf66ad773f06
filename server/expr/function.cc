#include "server/expr/function.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

namespace penstock::expr {
namespace {

using Registry = std::map<std::string, FunctionEntry, std::less<>>;

// Made on first use: the order in which static objects of different files are made is not defined.
Registry& MutableRegistry() {
  static auto* registry = new Registry();
  return *registry;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Splits "f(a, b=1, c=[1, 2])" at the commas of its outermost parentheses.
std::vector<Parameter> ParseParameters(std::string_view signature) {
  std::vector<Parameter> parameters;
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
    const std::string_view name = Trim(item.substr(0, equals));
    parameters.push_back({std::string(name), equals == std::string_view::npos});
  }
  return parameters;
}

template <typename Function>
void Register(const Function& function) {
  FunctionEntry entry{function, ParseParameters(function.signature)};
  if (!MutableRegistry().emplace(std::string(function.name), std::move(entry)).second) {
    std::fprintf(stderr, "function registered twice: %.*s\n",
                 static_cast<int>(function.name.size()), function.name.data());
    std::abort();
  }
}

}  // namespace

RowFunctionRegistration::RowFunctionRegistration(const RowFunction& function) {
  Register(function);
}

ElementwiseRegistration::ElementwiseRegistration(absl::Span<const ElementwiseFunction> family) {
  for (const ElementwiseFunction& function : family) Register(function);
}

ViewRegistration::ViewRegistration(const ViewFunction& function) { Register(function); }

std::string_view FunctionEntry::name() const {
  return std::visit([](const auto& f) { return f.name; }, function);
}

std::string_view FunctionEntry::signature() const {
  return std::visit([](const auto& f) { return f.signature; }, function);
}

std::string_view FunctionEntry::doc() const {
  return std::visit([](const auto& f) { return f.doc; }, function);
}

const FunctionEntry* FindFunction(std::string_view name) {
  const auto found = MutableRegistry().find(name);
  return found == MutableRegistry().end() ? nullptr : &found->second;
}

std::vector<const FunctionEntry*> AllFunctions() {
  std::vector<const FunctionEntry*> functions;
  for (const auto& [name, entry] : MutableRegistry()) functions.push_back(&entry);
  return functions;
}

}  // namespace penstock::expr
