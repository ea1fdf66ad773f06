#include "server/engine/plan/op_traits.h"

#include "server/engine/plan/op_registry.h"
#include "server/engine/spec/stage_message.h"

namespace penstock {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

const OpTraits& TraitsOf(const FieldDescriptor* op) {
  static const auto* const none = new OpTraits;
  const OpDefinition* const definition = op == nullptr ? nullptr : FindOp(op->name());
  return definition == nullptr ? *none : definition->traits;
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
