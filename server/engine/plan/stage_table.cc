#include "server/engine/plan/stage_table.h"

#include <algorithm>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/engine/spec/stages.h"

namespace penstock {

StageTable::StageTable(v1::PipelineSpec spec)
    : spec_(std::move(spec)),
      names_(StageNames(spec_)),
      kinds_(names_.size(), StageKind::kHint),
      meanings_(names_.size()) {}

absl::Status StageTable::Check() const {
  if (spec_.stage_size() == 0)
    return absl::InvalidArgumentError(
        "the spec has no stage; the first is a source such as tfrecord");
  if (names_.size() > kMaxStages) {
    return absl::InvalidArgumentError(absl::StrCat("too many stages: limit ", kMaxStages,
                                                   " with those inside of others, found ",
                                                   names_.size()));
  }
  std::set<std::string> names;
  for (const std::string& name : names_) {
    if (!names.insert(name).second)
      return absl::InvalidArgumentError(absl::StrCat("two stages are called \"", name, "\""));
  }
  return absl::OkStatus();
}

int StageTable::NumberOf(const v1::Stage& stage) {
  const std::vector<v1::Stage*> all = AllStages(spec_);
  return static_cast<int>(std::find(all.begin(), all.end(), &stage) - all.begin());
}

void StageTable::MarkOrder(const WorkNode& work) {
  for (const int stage : work.stages) kinds_[stage] = StageKind::kOrder;
  for (const std::unique_ptr<WorkNode>& input : work.inputs) MarkOrder(*input);
}

void StageTable::RaiseMeaning(int stage, OpMeaning meaning) {
  OpMeaning& now = meanings_[stage];
  if (meaning.number > now.number) now = std::move(meaning);
}

}  // namespace penstock
