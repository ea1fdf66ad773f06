#include "server/engine/spec/python_functions.h"

#include <vector>

#include "penstock/v1/ops.pb.h"

namespace penstock {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void VisitPythonFunctions(const Message& message,
                          absl::FunctionRef<void(const v1::PythonFunction&)> visit) {
  if (message.GetDescriptor() == v1::PythonFunction::descriptor())
    visit(static_cast<const v1::PythonFunction&>(message));
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      VisitPythonFunctions(reflection.GetMessage(message, field), visit);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i)
      VisitPythonFunctions(reflection.GetRepeatedMessage(message, field, i), visit);
  }
}

void AddPythonFunctions(const Message& message, PythonFunctions* found) {
  VisitPythonFunctions(message, [found](const v1::PythonFunction& function) {
    found->emplace(function.file(), function.code());
  });
}

}  // namespace penstock
