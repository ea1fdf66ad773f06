// Runs a batch's work over one block of rows of a step, into the step's slot.
//
// Threads:  one runner a worker.
// Owns:     the temporaries of the block it runs.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "server/engine/compute/batch_program.h"
#include "server/engine/compute/row_evaluator.h"
#include "server/engine/compute/rows_away.h"
#include "server/engine/compute/stage_clock.h"
#include "server/engine/compute/step.h"
#include "server/engine/read/file_table.h"

namespace penstock {

class BlockRunner {
 public:
  // `sharing` as RowEvaluator has it.
  BlockRunner(FileTable& files, StageClock& clock, const PrefixMember* sharing = nullptr)
      : evaluator_(files, clock, sharing) {}

  // Finds out which rows of a step whose records are there, `info.rows` in all, are to be seen:
  // before any of them is filled.
  static void ShowRows(const BatchProgram& program, Step* step);

  // Positions among the references of these rows become records, as they do before the rows are
  // filled: for who asks for bytes of them first.
  void Resolve(const BatchProgram& program, Step* step, uint32_t first, uint32_t rows);

  // Fills rows [first, first + rows) of the step. A failing row is noted in the step, with its
  // address; the lowest of all blocks stays.
  void Run(const BatchProgram& program, Step* step, uint32_t first, uint32_t rows);

  // The same where others compute some of the rows, at these nodes (RowsAway). False when the block
  // has left for them: then it is gone on with, by a call with the same arguments, when `task` is
  // back, which Ended() is told first.
  bool RunInParts(const BatchProgram& program, Step* step, uint32_t first, uint32_t rows,
                  absl::Span<const WorkNode* const> nodes, AwayTasks& away, AwayTask* task);
  void Ended(absl::Status status) { rows_away_.Ended(std::move(status)); }
  // Whose time the next call takes.
  void set_clock(StageClock& clock) { evaluator_.set_clock(clock); }

  // Behind the last block of a step: lays what has no fixed place, and fills rows that are no
  // elements. With `room` the slot's variable part is allocated there, of the size that is needed.
  void Complete(const BatchProgram& program, Step* step, Arena* room = nullptr);

 private:
  void Begin(const BatchProgram& program, Step* step, uint32_t first, uint32_t rows);
  // Up to the first row that fails, which is noted in the step: false then.
  bool RunToFailure(Step* step, uint32_t first, uint32_t rows);
  // Columns of the batch's tensors: of those that the last op can write where the trainer reads,
  // with that place for rows from `first` on.
  Columns Places(const Step& step, uint32_t first, uint32_t rows) const;
  RowStatus RunRows(Step* step, uint32_t first, uint32_t rows);
  // The same, which may throw where there is no memory.
  RowStatus RunRowsWithin(Step* step, uint32_t first, uint32_t rows);

  // What an op left elsewhere goes to its place in the slot, or to the step's variable rows.
  RowStatus PutRows(Step* step, uint32_t first, uint32_t rows, absl::Span<const Column> columns);

  // The same of one tensor that has its place in the slot, for those rows that are to be seen.
  RowStatus PutFixed(size_t tensor, const RowLayout& layout, const Step& step, uint32_t first,
                     uint32_t rows, const Column& column) const;

  RowStatus LayVariable(Step* step, Arena* room);

  // Behind the step's failure_mutex, or the last block.
  void NoteFailure(Step* step, int row, const absl::Status& status, int stage, bool loading);
  // The address of a failing row: of the first of its references that lies in a file.
  absl::Status WithRowAddress(const absl::Status& status, const Step& step, int row);

  const BatchProgram* program_ = nullptr;  // of the call
  RowEvaluator evaluator_;
  uint32_t block_ = 0;  // of the call, among those of the step
  RowsAway rows_away_;
  uint32_t next_ = 0;   // of a block that goes in parts: the first row that is not done
  bool begun_ = false;  // such a block has been
  int failed_stage_ = 0;
  bool failed_loading_ = false;
};

}  // namespace penstock
