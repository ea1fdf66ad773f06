#include "server/engine/plan/open_seeds.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/plan/plan_impl.h"
#include "server/engine/spec/stage_message.h"
#include "server/engine/spec/stages.h"

namespace penstock {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The field of an op in which the plan has a seed that was not given; "" where there is none.
std::string OpenSeed(const Message& given, const Message& planned) {
  const google::protobuf::Descriptor& type = *planned.GetDescriptor();
  const google::protobuf::Reflection& reflection = *planned.GetReflection();
  const bool has_texts = type.FindFieldByName("let") != nullptr;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* const field = type.field(i);
    if (field->name() == "seed" && !field->is_repeated() && reflection.HasField(planned, field) &&
        !reflection.HasField(given, field)) {
      return "seed: ";
    }
    // In the text of an expression a seed was added to each call without one.
    if (!has_texts || field->cpp_type() != FieldDescriptor::CPPTYPE_STRING) continue;
    if (!field->is_repeated()) {
      const std::string text = reflection.GetString(given, field);
      if (text != reflection.GetString(planned, field))
        return absl::StrCat(field->name(), ": \"", text, "\": seed: ");
      continue;
    }
    const int count =
        std::min(reflection.FieldSize(given, field), reflection.FieldSize(planned, field));
    for (int j = 0; j < count; ++j) {
      const std::string text = reflection.GetRepeatedString(given, field, j);
      if (text != reflection.GetRepeatedString(planned, field, j))
        return absl::StrCat(field->name(), ": \"", text, "\": seed: ");
    }
  }
  return "";
}

}  // namespace

absl::Status CheckSeedsAreGiven(const v1::PipelineSpec& given, const v1::PipelineSpec& planned) {
  v1::PipelineSpec first = given;
  v1::PipelineSpec second = planned;
  const std::vector<v1::Stage*> before = AllStages(first);
  const std::vector<v1::Stage*> after = AllStages(second);
  const std::vector<std::string> names = StageNames(second);
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    const FieldDescriptor* const op = OpField(*after[i]);
    if (op == nullptr || OpField(*before[i]) != op) continue;
    const std::string field = OpenSeed(before[i]->GetReflection()->GetMessage(*before[i], op),
                                       after[i]->GetReflection()->GetMessage(*after[i], op));
    if (field.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "stage ", names[i], ": ", field,
        "expected a number, found none: each run of this spec draws another one, so that nothing "
        "can be said of a step; write one, or take the spec of the pipeline that runs, which has "
        "them: penstock get NAME"));
  }
  return absl::OkStatus();
}

}  // namespace penstock
