// Runs the work of a plan over one block of rows of a step, into the step's slot.
//
// Threads:  one runner a worker.
// Owns:     the temporaries of the block it runs.
#pragma once

#include <memory>
#include <vector>

#include "server/engine/file_table.h"
#include "server/engine/plan_impl.h"
#include "server/engine/row_evaluator.h"
#include "server/engine/stage_clock.h"
#include "server/engine/step.h"

namespace penstock {

class BlockRunner {
 public:
  BlockRunner(const PlanImpl& plan, FileTable& files, StageClock& clock);

  // Fills rows [first, first + rows) of the step. A failing row is noted in the step, with its
  // address; the lowest of all blocks stays.
  void Run(Step* step, uint32_t first, uint32_t rows);

  // Behind the last block of a step: lays what has no fixed place, and fills rows that are no elements.
  void Complete(Step* step);

 private:
  // Brings the bytes of rows [first, end) nearer.
  void Fetch(const Step& step, uint32_t first, uint32_t end) const;
  // False when a row failed.
  bool RunStrip(Step* step, uint32_t first, uint32_t rows);
  RowStatus RunRows(Step* step, uint32_t first, uint32_t rows);

  // What an op left elsewhere goes to its place in the slot, or to the step's variable rows.
  RowStatus PutRows(Step* step, uint32_t first, uint32_t rows, absl::Span<const Column> columns);

  // The address of a failing row: of the first of its references that lies in a file.
  absl::Status WithRowAddress(const absl::Status& status, const Step& step, int row);

  const PlanImpl& plan_;
  RowEvaluator evaluator_;
  int failed_stage_ = 0;
};

}  // namespace penstock
