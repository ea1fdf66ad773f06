#include "server/engine/plan/open_seeds.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/engine/spec/op_traits.h"
#include "server/engine/spec/stage_message.h"
#include "server/engine/spec/stages.h"

namespace penstock {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Whether a seed stands there. `stage`: of an op.
bool HasSeed(const v1::Stage& stage, Option seed) {
  const auto [options, field] = FindOption(*OptionsOf(stage), seed);
  return options != nullptr && options->GetReflection()->HasField(*options, field);
}

// The first text of an op's expressions with a random function without a seed; "" where there is
// none.
std::string OpenText(const v1::Stage& stage) {
  v1::Stage given_seeds = stage;
  GiveSeeds(&given_seeds);
  for (const Option option : TraitsOf(stage).expressions) {
    const FoundOption<const Message> found = FindOption(*OptionsOf(stage), option);
    if (found.options == nullptr) continue;
    const Message& seeded = *FindOption(*OptionsOf(given_seeds), option).options;
    const google::protobuf::Reflection& reflection = *found.options->GetReflection();
    const bool is_list = found.field->is_repeated();
    const int count = is_list ? reflection.FieldSize(*found.options, found.field) : 1;
    for (int i = 0; i < count; ++i) {
      const auto text = [&](const Message& of) {
        return is_list ? reflection.GetRepeatedString(of, found.field, i)
                       : reflection.GetString(of, found.field);
      };
      if (text(*found.options) != text(seeded))
        return absl::StrCat(found.field->name(), ": \"", text(*found.options), "\": ");
    }
  }
  return "";
}

// The option of an op in which the plan has a seed that was not given; "" where there is none.
std::string OpenSeed(const v1::Stage& given, const v1::Stage& planned) {
  const Option seed = TraitsOf(planned).seed;
  if (HasSeed(planned, seed) && !HasSeed(given, seed))
    return absl::StrCat(OptionField(*OptionsOf(planned)->GetDescriptor(), seed)->name(), ": ");
  const std::string text = OpenText(given);
  return text.empty() ? "" : absl::StrCat(text, "seed: ");
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
    const std::string field = OpenSeed(*before[i], *after[i]);
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
