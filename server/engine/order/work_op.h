// Work ops: pure functions over a block of rows, run by any worker, with no state of their own.
#pragma once

#include <memory>
#include <string>

#include "absl/types/span.h"
#include "base/arena.h"
#include "base/column.h"
#include "base/signature.h"

namespace penstock {

class AwayWorkOp;

// Constant after construction; Run() is safe from any thread.
class WorkOp {
 public:
  virtual ~WorkOp() = default;

  // The features that Run() makes, with the shape of one row.
  virtual const Signature& output() const = 0;

  // Whether it draws random numbers: `in` then has one more column, of each row's RowIdentity.
  virtual bool draws() const { return false; }

  // `in` has one column for each feature of the input. Where `out[i].data` is set, feature i must
  // be written there, dense; elsewhere the op may leave a view of its input or memory of `arena`,
  // valid until the block is done.
  virtual RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                        Arena& arena) const = 0;

  // The same where `out` is a part of a batch that is larger than the caches: its memory need not
  // be in them. All columns are set.
  virtual RowStatus RunPastCaches(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                                  Arena& arena) const {
    return Run(rows, in, out, arena);
  }

  // Where others compute the rows: the op itself (away_work_op.h). Run() waits for them then.
  virtual const AwayWorkOp* away() const { return nullptr; }

  // How it computes, a line each, for Plan::Explain().
  virtual std::string Describe() const { return ""; }

  // One op that does the work of this and then of `next`, or null when they stay apart.
  virtual std::unique_ptr<WorkOp> FusedWith(const WorkOp& next) const { return nullptr; }
};

}  // namespace penstock
