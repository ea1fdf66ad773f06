#include "server/engine/spec/stage_files.h"

#include <string>

#include "server/engine/spec/op_traits.h"
#include "server/engine/spec/stage_message.h"
#include "server/expr/file_arguments.h"

namespace penstock {
namespace {

using google::protobuf::Message;
using google::protobuf::Reflection;

// Puts what `change` makes of each expression in its place, until one fails.
template <typename Change>
absl::Status ChangeExpressions(v1::Stage* stage, Change change) {
  Message* const all_options = MutableOptionsOf(stage);
  if (all_options == nullptr) return absl::OkStatus();
  for (const Option option : TraitsOf(*stage).expressions) {
    const auto [options, field] = FindOption(all_options, option);
    if (options == nullptr) continue;
    const Reflection& reflection = *options->GetReflection();
    const bool is_list = field->is_repeated();
    const int count = is_list ? reflection.FieldSize(*options, field) : 1;
    for (int i = 0; i < count; ++i) {
      const std::string text = is_list ? reflection.GetRepeatedString(*options, field, i)
                                       : reflection.GetString(*options, field);
      const absl::StatusOr<std::string> changed = change(text);
      if (!changed.ok()) return changed.status();
      if (*changed == text) continue;
      if (is_list) {
        reflection.SetRepeatedString(options, field, i, *changed);
      } else {
        reflection.SetString(options, field, *changed);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status GiveContents(v1::Stage* stage, FileSystem& files) {
  return ChangeExpressions(
      stage, [&](const std::string& text) { return expr::WithContents(text, files); });
}

void StripFileArguments(v1::Stage* stage) {
  ChangeExpressions(stage, [](const std::string& text) -> absl::StatusOr<std::string> {
    return expr::WithoutFilePaths(text);
  }).IgnoreError();
}

}  // namespace penstock
