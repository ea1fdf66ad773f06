#include "server/engine/spec/op_traits.h"

#include <map>
#include <string>
#include <utility>

#include "server/engine/spec/stage_message.h"

namespace penstock {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

namespace {

std::map<std::string, OpTraits, std::less<>>& Traits() {
  static auto* const traits = new std::map<std::string, OpTraits, std::less<>>;
  return *traits;
}

}  // namespace

void RegisterTraits(std::string_view op, OpTraits traits) {
  Traits().emplace(op, std::move(traits));
}

const OpTraits& TraitsOf(const FieldDescriptor* op) {
  static const auto* const none = new OpTraits;
  if (op == nullptr) return *none;
  const auto found = Traits().find(op->name());
  return found == Traits().end() ? *none : found->second;
}

const OpTraits& TraitsOf(const v1::Stage& stage) { return TraitsOf(OpField(stage)); }

const FieldDescriptor* OptionField(const google::protobuf::Message& options, int number) {
  return number == 0 ? nullptr : options.GetDescriptor()->FindFieldByNumber(number);
}

const FieldDescriptor* InputField(const google::protobuf::Message& options) {
  const Descriptor& type = *options.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    if (type.field(i)->message_type() == v1::Input::descriptor()) return type.field(i);
  }
  return nullptr;
}

}  // namespace penstock
