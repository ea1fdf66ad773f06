#include "server/engine/spec/stages.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "server/engine/spec/stage_message.h"

namespace penstock {
namespace {

// Every stage behind the op that holds it, in the order of the text.
template <typename Message, typename Visit>
void VisitStages(Message& message, const Visit& visit) {
  using google::protobuf::FieldDescriptor;
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  std::sort(fields.begin(), fields.end(), [](const FieldDescriptor* a, const FieldDescriptor* b) {
    return a->number() < b->number();
  });
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const auto enter = [&](auto& inner) {
      if (inner.GetDescriptor() == v1::Stage::descriptor()) visit(inner);
      VisitStages(inner, visit);
    };
    if constexpr (std::is_const_v<Message>) {
      if (field->is_repeated()) {
        for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i)
          enter(message.GetReflection()->GetRepeatedMessage(message, field, i));
      } else {
        enter(message.GetReflection()->GetMessage(message, field));
      }
    } else {
      if (field->is_repeated()) {
        for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i)
          enter(*message.GetReflection()->MutableRepeatedMessage(&message, field, i));
      } else {
        enter(*message.GetReflection()->MutableMessage(&message, field));
      }
    }
  }
}

}  // namespace

std::vector<std::string> StageNames(const v1::PipelineSpec& spec) {
  std::vector<std::string> names;
  std::map<std::string, int> uses;
  const google::protobuf::Message& message = spec;
  VisitStages(message, [&](const google::protobuf::Message& inner) {
    const auto& stage = static_cast<const v1::Stage&>(inner);
    const google::protobuf::FieldDescriptor* field = OpField(stage);
    const std::string op = field ? std::string(field->name()) : "stage";
    const int ordinal = ++uses[op];
    if (!stage.name().empty()) {
      names.push_back(stage.name());
    } else {
      names.push_back(ordinal == 1 ? op : absl::StrCat(op, "_", ordinal));
    }
  });
  return names;
}

std::vector<v1::Stage*> AllStages(v1::PipelineSpec& spec) {
  std::vector<v1::Stage*> stages;
  google::protobuf::Message& message = spec;
  VisitStages(message, [&](google::protobuf::Message& inner) {
    stages.push_back(static_cast<v1::Stage*>(&inner));
  });
  return stages;
}

}  // namespace penstock
