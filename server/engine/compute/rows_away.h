// The rows of one block that others compute (away_work_op.h): begun one op after another, and what
// came of them, which Evaluate() finds here.
//
// A block goes in parts: what an op needs is computed, and the block leaves with it; when it is
// back, the same is done for the next such op; then all of its work is evaluated, in which these
// ops have been done already. No row is computed twice but those that feed several of them.
//
// Threads:  one at a time: a worker, or, between Begin() and Ended(), whoever computes the rows.
// Owns:     what the ops were given and have made, until Reset().
#pragma once

#include <deque>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "base/arena.h"
#include "base/column.h"
#include "server/engine/order/away_work_op.h"
#include "server/engine/read/column_loader.h"
#include "server/engine/tasks/away_tasks.h"

namespace penstock {

class RowEvaluator;
struct WorkNode;

// The rows of a column from number `first` on. `axes`: sizes of a row that `dims` has.
Column RowsFrom(const Column& column, size_t first, size_t axes);

class RowsAway {
 public:
  // The nodes of this work that a block can leave at, those that are needed first in front. Empty
  // for work that is the workers' alone.
  static std::vector<const WorkNode*> NodesOf(const WorkNode& work);
  // The same, and those of sections in front of it and of branches: whose work it is, wherever it
  // is waited for.
  static std::vector<const WorkNode*> AllNodesOf(const WorkNode& work);

  // Begins what is missing for these rows: 0, and nothing here is the caller's until `task` is
  // back. Else how many of them, from the first one on, are to be evaluated next: they have all
  // that they need, or the last one of them fails. `places`: of the last node's features, where
  // that is the whole work; a column whose data is set says where these rows are to lie in the end.
  // `room`: as AwayRows has it, for the last node.
  uint32_t Begin(RowEvaluator& evaluator, absl::Span<const WorkNode* const> nodes,
                 RowReferences rows, AwayTasks& away, AwayTask* task,
                 absl::Span<const Column> places = {}, LoneRowRoom* room = nullptr);
  // To be called where `task` comes back.
  void Ended(absl::Status status);

  // Whether these rows of the node have been made: then `*status` says how, and `out` where.
  bool Take(const WorkNode& node, RowReferences rows, absl::Span<Column> out,
            RowStatus* status) const;

  void Reset();

 private:
  using Columns = absl::InlinedVector<Column, 8>;
  struct Made {
    const WorkNode* node = nullptr;
    RowReferences rows;  // the address of the first one's references tells which they are
    Columns in;
    Columns out;
    AwayRows call;

    // How many rows are made, or known to fail.
    uint32_t known() const { return call.failure.ok() ? rows.rows : call.failure.row + 1; }
  };
  // What has been made of the node's rows, from this one on; null: nothing. `*skipped`: its rows in
  // front of them.
  const Made* Find(const WorkNode& node, RowReferences rows, uint32_t* skipped) const;

  Arena arena_;            // of what the ops make
  std::deque<Made> made_;  // stays where it is
};

}  // namespace penstock
