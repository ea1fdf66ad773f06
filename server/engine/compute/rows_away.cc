#include "server/engine/compute/rows_away.h"

#include <algorithm>
#include <utility>

#include "server/engine/compute/row_evaluator.h"
#include "server/engine/order/dataset.h"

namespace penstock {
namespace {

void AddNodes(const WorkNode& work, bool all, std::vector<const WorkNode*>* nodes) {
  // The rows of a branch are others than the block's. Behind a source lies what a section has done.
  if (!all && (work.kind == WorkNode::Kind::kBranch || work.kind == WorkNode::Kind::kLoad)) return;
  for (const std::unique_ptr<WorkNode>& input : work.inputs)
    if (input != nullptr) AddNodes(*input, all, nodes);
  if (work.kind == WorkNode::Kind::kWork && work.op->away() != nullptr) nodes->push_back(&work);
}

}  // namespace

Column RowsFrom(const Column& column, size_t first, size_t axes) {
  Column rest = column;
  if (rest.data != nullptr) rest.data += first * rest.row_bytes;
  if (rest.rows != nullptr) rest.rows += first;
  if (rest.dims != nullptr) rest.dims += first * axes;
  return rest;
}

std::vector<const WorkNode*> RowsAway::NodesOf(const WorkNode& work) {
  std::vector<const WorkNode*> nodes;
  AddNodes(work, /*all=*/false, &nodes);
  return nodes;
}

std::vector<const WorkNode*> RowsAway::AllNodesOf(const WorkNode& work) {
  std::vector<const WorkNode*> nodes;
  AddNodes(work, /*all=*/true, &nodes);
  return nodes;
}

uint32_t RowsAway::Begin(RowEvaluator& evaluator, absl::Span<const WorkNode* const> nodes,
                         RowReferences rows, AwayTasks& away, AwayTask* task,
                         absl::Span<const Column> places, LoneRowRoom* room) {
  for (const WorkNode* const node : nodes) {
    uint32_t skipped = 0;
    if (const Made* const made = Find(*node, rows, &skipped)) {
      rows.rows = std::min(rows.rows, made->known() - skipped);
      continue;
    }
    Made& call = made_.emplace_back();
    while (true) {
      evaluator.Reset();
      call.in.assign(node->inputs[0]->output.size(), Column());
      const RowStatus status = evaluator.Evaluate(*node->inputs[0], rows, absl::MakeSpan(call.in));
      if (status.ok()) break;
      // The rows in front of it go on; it fails when it is evaluated.
      rows.rows = status.row;
      if (rows.rows == 0) {
        made_.pop_back();
        return 1;
      }
    }
    if (node->op->draws()) evaluator.AddIdentities(*node->inputs[0], rows, &call.in);
    call.node = node;
    call.rows = rows;
    if (node == nodes.back() && !places.empty()) {
      call.out.assign(places.begin(), places.end());
    } else {
      call.out.assign(node->output.size(), Column());
    }
    call.call = {.rows = static_cast<int>(rows.rows),
                 .in = call.in,
                 .out = absl::MakeSpan(call.out),
                 .arena = &arena_,
                 .room = node == nodes.back() ? room : nullptr};
    const AwayWorkOp& op = *node->op->away();
    StageClock::Scope scope(evaluator.clock(), node->stages.back());
    // From here on it may be another worker's.
    op.Begin(&call.call,
             away.Leave(task, {CallKind::kWork, op.doing(), op.place(), 0, node->stages.back()}));
    return 0;
  }
  return rows.rows;
}

void RowsAway::Ended(absl::Status status) {
  if (!status.ok()) made_.back().call.failure = {std::move(status), 0};
}

const RowsAway::Made* RowsAway::Find(const WorkNode& node, RowReferences rows,
                                     uint32_t* skipped) const {
  for (const Made& made : made_) {
    if (made.node != &node || rows.refs < made.rows.refs) continue;
    const auto first = static_cast<uint32_t>((rows.refs - made.rows.refs) / rows.stride);
    if (first >= made.known()) continue;
    *skipped = first;
    return &made;
  }
  return nullptr;
}

bool RowsAway::Take(const WorkNode& node, RowReferences rows, absl::Span<Column> out,
                    RowStatus* status) const {
  uint32_t skipped = 0;
  const Made* const made = Find(node, rows, &skipped);
  if (made == nullptr || skipped + rows.rows > made->known()) return false;
  *status = {};
  const auto failed = static_cast<uint32_t>(made->call.failure.row);
  if (!made->call.failure.ok() && failed < skipped + rows.rows)
    *status = {made->call.failure.status, static_cast<int>(failed - skipped)};
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = RowsFrom(made->out[i], skipped, node.output[i].type.shape.size());
  return true;
}

void RowsAway::Reset() {
  made_.clear();
  arena_.Reset();
}

}  // namespace penstock
