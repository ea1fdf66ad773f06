// Loaders whose rows are made of elements that are computed when a row is: of the work that stands
// behind the loader's node in the tree. How many elements a row needs is the loader's affair, so
// that it has the evaluator compute them, in as many calls as it likes.
//
// Threads: constant after construction; LoadBy() is safe from any thread.
#pragma once

#include "server/engine/compute/row_evaluator.h"
#include "server/engine/order/dataset.h"
#include "server/engine/read/column_loader.h"

namespace penstock {

class EvaluatingLoader : public ColumnLoader {
 public:
  // Where a row failed: in a stage of the elements' work, or in the loader's own.
  struct Failed {
    int stage = kOwn;
    bool loading = false;  // as RowEvaluator::failed_loading()
  };
  static constexpr int kOwn = -1;

  // As Load(). `elements`: the node's input. `failed` is set where the result is a failure.
  virtual RowStatus LoadBy(RowEvaluator& evaluator, const WorkNode& elements, RowReferences rows,
                           absl::Span<Column> out, Failed* failed) const = 0;

  // Nobody who evaluates a tree calls it.
  RowStatus Load(RowReferences, FileTable&, absl::Span<Column>, Arena&) const final {
    return {absl::InternalError("rows of elements that are computed need an evaluator"), 0};
  }
};

}  // namespace penstock
