#include "server/engine/plan/op_registry.h"

#include <map>
#include <utility>

namespace penstock {
namespace {

std::map<std::string, OpDefinition, std::less<>>& Ops() {
  static auto* ops = new std::map<std::string, OpDefinition, std::less<>>;
  return *ops;
}

}  // namespace

void RegisterOp(std::string_view name, OpDefinition definition) {
  Ops().emplace(name, std::move(definition));
}

const OpDefinition* FindOp(std::string_view name) {
  auto found = Ops().find(name);
  return found == Ops().end() ? nullptr : &found->second;
}

}  // namespace penstock
