#include "server/engine/spec/python_functions.h"

#include <vector>

#include "penstock/v1/ops.pb.h"

namespace penstock {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void AddPythonFunctions(const Message& message, PythonFunctions* found) {
  if (message.GetDescriptor() == v1::PythonFunction::descriptor()) {
    const auto& function = static_cast<const v1::PythonFunction&>(message);
    found->emplace(function.file(), function.code());
  }
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      AddPythonFunctions(reflection.GetMessage(message, field), found);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i)
      AddPythonFunctions(reflection.GetRepeatedMessage(message, field, i), found);
  }
}

}  // namespace penstock
