#include "server/expr/function.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "server/expr/signature.h"

namespace penstock::expr {
namespace {

using Registry = std::map<std::string, FunctionEntry, std::less<>>;

// Made on first use: the order in which static objects of different files are made is not defined.
Registry& MutableRegistry() {
  static auto* registry = new Registry();
  return *registry;
}

template <typename Function>
void Register(const Function& function) {
  FunctionEntry entry{function, {}};
  for (const SignatureParameter& parameter : ParametersOf(function.signature)) {
    entry.parameters.push_back({std::string(parameter.name), parameter.required});
  }
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
