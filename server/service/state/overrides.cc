#include "server/service/state/overrides.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/file_error.h"
#include "base/signature.h"
#include "google/protobuf/message.h"
#include "server/engine/plan/plan.h"
#include "server/engine/spec/constant_file.h"
#include "server/engine/spec/op_traits.h"
#include "server/engine/spec/spec_paths.h"
#include "server/engine/spec/stage_message.h"
#include "server/engine/spec/stages.h"
#include "server/service/state/text_proto.h"

namespace penstock {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::RepeatedPtrField;

// The list of files that a stage reads; without a field if it reads none.
struct OpList {
  Message* op = nullptr;
  const FieldDescriptor* field = nullptr;
};
OpList FilesOf(v1::Stage* stage) {
  Message* const op = MutableOptionsOf(stage);
  if (op == nullptr) return {};
  const auto [options, field] = FindOption(op, TraitsOf(*stage).files);
  return {options, field};
}

// The stages of a spec with the names that the user sees.
class NamedStages {
 public:
  explicit NamedStages(v1::PipelineSpec* spec)
      : stages_(AllStages(*spec)), names_(StageNames(*spec)) {}

  int size() const { return static_cast<int>(stages_.size()); }
  v1::Stage* stage(int i) const { return stages_[i]; }
  const std::string& name(int i) const { return names_[i]; }

  absl::StatusOr<int> Find(absl::string_view name) const {
    for (int i = 0; i < size(); ++i) {
      if (names_[i] == name) return i;
    }
    return absl::InvalidArgumentError(absl::StrCat("no stage \"", name, "\"",
                                                   DidYouMean(std::string(name), names_),
                                                   "; the spec has ", ListNames(names_)));
  }

  // The one of `candidates`; an error that says `what` and lists them if there are several.
  absl::StatusOr<int> Only(const std::vector<int>& candidates, absl::string_view what,
                           absl::string_view how) const {
    if (candidates.size() == 1) return candidates[0];
    std::vector<absl::string_view> names;
    for (int i : candidates) names.push_back(names_[i]);
    return absl::InvalidArgumentError(absl::StrCat(
        "several stages ", what, ": ", absl::StrJoin(names, ", "), "; name one: ", how));
  }

 private:
  const std::vector<v1::Stage*> stages_;
  const std::vector<std::string> names_;
};

absl::StatusOr<int> FindSource(const NamedStages& stages, const v1::FilesOverride& change) {
  std::vector<int> sources;
  for (int i = 0; i < stages.size(); ++i) {
    if (FilesOf(stages.stage(i)).field != nullptr) sources.push_back(i);
  }
  if (sources.empty()) return absl::InvalidArgumentError("no stage reads files");
  if (change.stage().empty()) {
    return stages.Only(sources, "read files", absl::StrCat("STAGE=", change.glob()));
  }
  auto found = stages.Find(change.stage());
  if (found.ok() && FilesOf(stages.stage(*found)).field == nullptr) {
    std::vector<absl::string_view> names;
    for (int i : sources) names.push_back(stages.name(i));
    return absl::InvalidArgumentError(absl::StrCat(
        "stage \"", change.stage(), "\" reads no files; these do: ", absl::StrJoin(names, ", ")));
  }
  return found;
}

absl::Status ApplyFiles(const NamedStages& stages,
                        const RepeatedPtrField<v1::FilesOverride>& changes) {
  std::set<int> replaced;
  for (const v1::FilesOverride& change : changes) {
    if (change.glob().empty()) {
      return absl::InvalidArgumentError("files override without a path or glob");
    }
    const absl::StatusOr<int> source = FindSource(stages, change);
    if (!source.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("files override \"", change.glob(), "\": ", source.status().message()));
    }
    const OpList files = FilesOf(stages.stage(*source));
    const auto& reflection = *files.op->GetReflection();
    if (replaced.insert(*source).second) reflection.ClearField(files.op, files.field);
    reflection.AddString(files.op, files.field, change.glob());
  }
  return absl::OkStatus();
}

absl::Status SetIntegers(const std::vector<absl::string_view>& words, v1::Constant* constant) {
  for (int i = 0; i < constant->int_value_size(); ++i) {
    int64_t value;
    if (!absl::SimpleAtoi(words[i], &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected an integer of 64 bits, found \"", words[i], "\""));
    }
    constant->set_int_value(i, value);
  }
  return absl::OkStatus();
}

absl::Status SetNumbers(const std::vector<absl::string_view>& words, v1::Constant* constant) {
  for (int i = 0; i < constant->value_size(); ++i) {
    double value;
    if (!absl::SimpleAtod(words[i], &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected a number, found \"", words[i], "\""));
    }
    constant->set_value(i, value);
  }
  return absl::OkStatus();
}

absl::Status SetConstant(absl::string_view text, v1::Constant* constant) {
  if (!constant->npy().empty() || !constant->text_line().empty()) {
    return absl::InvalidArgumentError(absl::StrCat("its values are in a file: change its ",
                                                   constant->npy().empty() ? "text_line" : "npy",
                                                   " in the spec"));
  }
  const bool integers = constant->int_value_size() > 0;
  const int size =
      constant->int_value_size() + constant->value_size() + constant->string_value_size();
  std::vector<absl::string_view> words = absl::StrSplit(text, ',');
  // A single text may hold commas.
  if (constant->string_value_size() == 1) words = {text};
  if (static_cast<int>(words.size()) != size) {
    return absl::InvalidArgumentError(absl::StrCat("expected ", size,
                                                   size == 1 ? " value" : " values", ", found ",
                                                   words.size(), " in \"", text, "\""));
  }
  for (int i = 0; i < constant->string_value_size(); ++i)
    constant->set_string_value(i, std::string(words[i]));
  return integers ? SetIntegers(words, constant) : SetNumbers(words, constant);
}

v1::Constant* FindConstant(v1::Stage* stage, absl::string_view name) {
  for (v1::Constant* constant : ConstantsOf(*stage)) {
    if (constant->name() == name) return constant;
  }
  return nullptr;
}

// Whether the stage's op has an option of this name.
bool HasOption(const v1::Stage& stage, const std::string& name) {
  const FieldDescriptor* const op = OpField(stage);
  return op != nullptr && op->message_type()->FindFieldByName(name) != nullptr;
}

absl::StatusOr<v1::Constant*> LocateConstant(const NamedStages& stages,
                                             const v1::ConstantOverride& change) {
  std::vector<int> candidates;
  std::vector<std::string> known;
  bool is_option = false;
  for (int i = 0; i < stages.size(); ++i) {
    if (!change.stage().empty() && stages.name(i) != change.stage()) continue;
    if (HasOption(*stages.stage(i), change.name())) is_option = true;
    for (v1::Constant* constant : ConstantsOf(*stages.stage(i))) known.push_back(constant->name());
    if (FindConstant(stages.stage(i), change.name()) != nullptr) candidates.push_back(i);
  }
  if (!change.stage().empty()) {
    const absl::StatusOr<int> stage = stages.Find(change.stage());
    if (!stage.ok()) return stage.status();
  }
  if (candidates.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no constant \"", change.name(), "\"",
        change.stage().empty() ? "" : absl::StrCat(" in stage \"", change.stage(), "\""),
        DidYouMean(change.name(), known), "; ",
        known.empty() ? "there are none" : absl::StrCat("known are ", ListNames(known)),
        known.empty() || is_option ? "; --set names a constant of a map stage: options are written "
                                     "in the spec, or changed "
                                     "by penstock update --next-epoch --set"
                                   : ""));
  }
  const absl::StatusOr<int> stage =
      stages.Only(candidates, absl::StrCat("have a constant \"", change.name(), "\""),
                  absl::StrCat("STAGE.", change.name(), "=", change.value()));
  if (!stage.ok()) return stage.status();
  return FindConstant(stages.stage(*stage), change.name());
}

absl::Status ApplyConstants(const NamedStages& stages,
                            const RepeatedPtrField<v1::ConstantOverride>& changes) {
  for (const v1::ConstantOverride& change : changes) {
    const absl::StatusOr<v1::Constant*> constant = LocateConstant(stages, change);
    const absl::Status status =
        constant.ok() ? SetConstant(change.value(), *constant) : constant.status();
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("constant override \"", change.name(), "\": ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status MakePathsAbsolute(const std::string& base_directory, v1::PipelineSpec* spec) {
  if (!base_directory.empty() && base_directory[0] != '/') {
    return absl::InvalidArgumentError(
        absl::StrCat("base_directory is not absolute: \"", base_directory, "\""));
  }
  const NamedStages stages(spec);
  absl::Status status;
  for (int i = 0; i < stages.size(); ++i) {
    VisitPaths(stages.stage(i), [&](PathKind, std::string* path) {
      // Addresses are for whoever opens files to judge.
      if (!status.ok() || path->empty() || (*path)[0] == '/' || IsAddress(*path)) return;
      if (base_directory.empty()) {
        status = absl::InvalidArgumentError(
            absl::StrCat("stage \"", stages.name(i),
                         "\": relative path without a base_directory: \"", *path, "\""));
        return;
      }
      *path = absl::StrCat(base_directory, base_directory.back() == '/' ? "" : "/", *path);
    });
  }
  return status;
}

}  // namespace

absl::Status ApplyOverrides(const v1::SpecOverrides& overrides, v1::PipelineSpec* spec) {
  if (overrides.workers() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("workers out of range: ", overrides.workers(), " < 0"));
  }
  const NamedStages stages(spec);
  if (absl::Status status = ApplyFiles(stages, overrides.files()); !status.ok()) return status;
  if (absl::Status status = ApplyConstants(stages, overrides.constants()); !status.ok()) {
    return status;
  }
  if (!overrides.name().empty()) spec->set_name(overrides.name());
  if (overrides.workers() > 0) spec->set_workers(overrides.workers());
  if (overrides.has_numa_node()) spec->set_numa_node(overrides.numa_node());
  return absl::OkStatus();
}

absl::StatusOr<v1::PipelineSpec> ResolveSource(const v1::SpecSource& source) {
  v1::PipelineSpec spec;
  switch (source.source_case()) {
    case v1::SpecSource::kSpec:
      if (absl::Status status = CheckFields(source.spec()); !status.ok()) return status;
      spec = source.spec();
      break;
    case v1::SpecSource::kText: {
      const std::string& file = source.text().file_name();
      absl::Status status =
          ParseTextProto(source.text().text(), file.empty() ? "spec" : file, &spec);
      if (!status.ok()) return status;
      break;
    }
    case v1::SpecSource::SOURCE_NOT_SET:
      return absl::InvalidArgumentError("the request holds no spec");
  }
  if (absl::Status status = ApplyOverrides(source.overrides(), &spec); !status.ok()) return status;
  if (absl::Status status = MakePathsAbsolute(source.base_directory(), &spec); !status.ok()) {
    return status;
  }
  return spec;
}

}  // namespace penstock
