#include "server/engine/spec/op_traits.h"

#include <map>
#include <string>
#include <utility>

#include "server/engine/spec/stage_message.h"

namespace penstock {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

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

const FieldDescriptor* OptionField(const Descriptor& options, Option option) {
  const FieldDescriptor* const field =
      option.number == 0 ? nullptr : options.FindFieldByNumber(option.number);
  if (field == nullptr || option.inside_number == 0) return field;
  const Descriptor* const inside = field->message_type();
  return inside == nullptr ? nullptr : inside->FindFieldByNumber(option.inside_number);
}

FoundOption<const Message> FindOption(const Message& options, Option option) {
  const FieldDescriptor* const field = OptionField(*options.GetDescriptor(), option);
  if (field == nullptr) return {};
  if (option.inside_number == 0) return {&options, field};
  const FieldDescriptor* const around = options.GetDescriptor()->FindFieldByNumber(option.number);
  const Reflection& reflection = *options.GetReflection();
  if (!reflection.HasField(options, around)) return {};
  return {&reflection.GetMessage(options, around), field};
}

FoundOption<Message> FindOption(Message* options, Option option) {
  const FoundOption<const Message> found = FindOption(*options, option);
  if (found.options == nullptr || option.inside_number == 0)
    return {found.options == nullptr ? nullptr : options, found.field};
  const FieldDescriptor* const around = options->GetDescriptor()->FindFieldByNumber(option.number);
  return {options->GetReflection()->MutableMessage(options, around), found.field};
}

void ClearOption(Message* options, Option option) {
  const FoundOption<Message> found = FindOption(options, option);
  if (found.options != nullptr)
    found.options->GetReflection()->ClearField(found.options, found.field);
}

const FieldDescriptor* InputField(const google::protobuf::Message& options) {
  const Descriptor& type = *options.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    if (type.field(i)->message_type() == v1::Input::descriptor()) return type.field(i);
  }
  return nullptr;
}

}  // namespace penstock
