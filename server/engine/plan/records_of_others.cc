#include "server/engine/plan/records_of_others.h"

#include <algorithm>
#include <memory>

#include "server/engine/read/record_loader.h"

namespace penstock {
namespace {

// Whether order ops look at no element.
bool MovesReferencesOnly(const OrderNode& node) {
  return !node.decided_by_values && node.values == nullptr &&
         (node.nested == nullptr || MovesReferencesOnly(*node.nested)) &&
         std::all_of(node.inputs.begin(), node.inputs.end(),
                     [](const auto& input) { return MovesReferencesOnly(*input); });
}

// Whether there is a section, which computes elements of all hosts.
bool HasSection(const WorkNode& node) {
  if (node.kind == WorkNode::Kind::kLoad) return !node.inputs.empty();
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [](const auto& input) { return HasSection(*input); });
}

void Locate(WorkNode& node) {
  if (node.kind == WorkNode::Kind::kLoad) {
    if (auto* const records = dynamic_cast<RecordLoader*>(node.loader.get())) records->Locate();
  }
  for (const std::unique_ptr<WorkNode>& input : node.inputs) Locate(*input);
}

}  // namespace

void LeaveRecordsOfOthers(World world, Dataset& dataset) {
  if (world.is_alone() || !MovesReferencesOnly(*dataset.order) || HasSection(*dataset.work)) return;
  Locate(*dataset.work);
}

}  // namespace penstock
