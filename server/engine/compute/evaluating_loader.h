// Loaders whose rows are made of elements that are computed when a row is: of the work that stands behind the loader's node in the tree.
// How many elements a row needs is the loader's affair, so that it has the evaluator compute them, in as many calls as it likes.
//
// Threads: constant after construction; LoadBy() is safe from any thread.
#pragma once

#include "server/engine/compute/row_evaluator.h"
#include "server/engine/order/dataset.h"
#include "server/engine/read/column_loader.h"

namespace penstock {

class EvaluatingLoader : public ColumnLoader {
 public:
  // As Load(). `elements`: the node's input. A failure is the evaluator's, which knows its stage, unless `*is_own` says that it is the
  // loader's.
  virtual RowStatus LoadBy(RowEvaluator& evaluator, const WorkNode& elements, RowReferences rows,
                           absl::Span<Column> out, bool* is_own) const = 0;

  // Nobody who evaluates a tree calls it.
  RowStatus Load(RowReferences, FileTable&, absl::Span<Column>, Arena&) const final {
    return {absl::InternalError("rows of elements that are computed need an evaluator"), 0};
  }
};

}  // namespace penstock
