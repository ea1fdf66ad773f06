// What a plan says of the world that it is made for: whether its batches can be divided among the
// hosts, and what that costs.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/engine/compute/own_rows.h"
#include "server/engine/plan/order_class.h"
#include "server/engine/plan/plan_impl.h"
#include "server/engine/plan/whole_batches.h"

namespace penstock {
namespace {

// The stages whose elements are made one by one before the next stage sees them, wherever their
// rows go: the last of each branch.
void FindSections(const WorkNode& node, std::vector<int>* stages) {
  if (node.kind == WorkNode::Kind::kLoad && !node.inputs.empty()) {
    const int stage = node.stages.back();
    if (std::find(stages->begin(), stages->end(), stage) == stages->end()) stages->push_back(stage);
    return;
  }
  for (const std::unique_ptr<WorkNode>& input : node.inputs) FindSections(*input, stages);
}

// "filter", or "filter, unbatch".
std::string NamesOf(const std::vector<int>& stages, const std::vector<std::string>& names) {
  return absl::StrJoin(stages, ", ",
                       [&](std::string* out, int stage) { absl::StrAppend(out, names[stage]); });
}

// What a step that is a whole batch as an element (plan/whole_batches.h) costs every host, and what
// of it is the same for all.
std::string ExplainWholeBatches(const Signature& whole, int64_t batch_rows) {
  std::vector<std::string> undivided;
  for (const Feature& feature : whole) {
    if (!IsDivided(feature.type, batch_rows)) undivided.push_back(feature.name);
  }
  return absl::StrCat(
      "note: world: a step is a whole batch, which a stage behind its batch op has made, kept or "
      "shuffled: each host computes all of it, and keeps its own rows",
      undivided.empty() ? ""
                        : absl::StrCat("; features whose first axis are not the batch's rows come "
                                       "whole to every host: ",
                                       ListNames(undivided)),
      "\n");
}

}  // namespace

absl::Status PlanImpl::CheckWorld() const {
  const World world = program_.world();
  if (world.is_alone()) return absl::OkStatus();
  if (!program_.batched()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "world: ", world.hosts,
        " hosts divide the rows of a batch, and what leaves the last stage (",
        built_.stages.names().back(),
        ") is no batch of rows: it is one element, or a function has left none of a batch's rows; "
        "put batch, or unbatch and batch, behind it"));
  }
  if (program_.batch_rows() >= world.hosts) return absl::OkStatus();
  return TooManyHosts(world, program_.batch_rows());
}

std::string PlanImpl::ExplainWorld() const {
  const World world = program_.world();
  if (world.is_alone()) return "";
  // A plan of a world without a batch of rows has whole batches as elements.
  const int64_t rows =
      program_.batched() ? program_.batch_rows() : BatchSizeOfElements(spec()).value_or(0);
  const RowSpan own = world.RowsOf(static_cast<uint32_t>(rows));
  std::string text = absl::StrCat("world: host ", world.host, " of ", world.hosts, ", rows ",
                                  own.first, " to ", own.first + own.count - 1, " of ", rows, "\n");
  if (program_.computes_all_rows()) {
    absl::StrAppend(&text,
                    "note: world: rows of a batch are as large as the largest of all hosts': each "
                    "host computes all rows, and keeps its own\n");
  }
  std::vector<int> sections;
  FindSections(work(), &sections);
  const std::string up_to =
      sections.empty() ? "the last stage that decides" : NamesOf(sections, stage_names());
  if (DecidedByValues(order()) || WorstClass(order()) == CursorClass::kReplayData) {
    absl::StrAppend(&text,
                    "note: world: values decide the order: each host computes all elements up to ",
                    up_to, "\n");
  } else if (!sections.empty() && program_.batched()) {
    absl::StrAppend(&text,
                    "note: world: stages take or keep whole elements: each host computes "
                    "all of them up to ",
                    up_to, "\n");
  }
  if (!program_.batched())
    absl::StrAppend(&text, ExplainWholeBatches(work().inputs[0]->output, rows));
  const auto streams =
      std::count_if(manifest().begin(), manifest().end(),
                    [](const FileEntry& file) { return file.is_stream && !file.is_one_element; });
  if (streams > 0) {
    absl::StrAppend(&text, "note: world: ", streams,
                    " of its files have no index (compressed ones have none): each host reads and "
                    "unpacks all of them\n");
  }
  return text;
}

}  // namespace penstock
