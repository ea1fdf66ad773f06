// A section: the part of a plan whose values decide the order of what follows. It is cut off in
// front: blocks of its elements are computed by workers ahead of need, and what they make is handed
// over, in order, as elements of a new sequence.
//
//     order ops ─► [ blocks: work, split ] ─► order ops ─► [ work, into slots ]
//
// Threads:  a Section is constant. A task's fields belong to the worker between Pop() and the store
//           of `done`, else to the front.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/memory_charge.h"
#include "server/engine/compute/batch_program.h"
#include "server/engine/compute/block_runner.h"
#include "server/engine/compute/row_evaluator.h"
#include "server/engine/compute/rows_away.h"
#include "server/engine/order/position.h"
#include "server/engine/read/element_cells.h"
#include "server/engine/read/record.h"
#include "server/engine/read/record_store.h"
#include "server/engine/read/skip_limits.h"
#include "server/engine/section/split_op.h"
#include "server/engine/tasks/work_queue.h"

namespace penstock {

struct Section {
  int stage = 0;                              // of the split op
  absl::Span<const std::string> stage_names;  // of the whole plan, whose they are
  const WorkNode* work = nullptr;  // from the references of an element to its features; the plan's
  WorkNode* tree = nullptr;        // the same, while the plan is made
  uint32_t width = 1;              // references of an element
  uint32_t block_rows = 1;         // elements of one task
  // One of the two: what becomes of each row, or what all rows of one element of the input make
  // together.
  std::unique_ptr<SplitOp> split;
  std::unique_ptr<BatchProgram> batch;
  // With `batch`: its rows are handed on as they were, where they make one, and what becomes of
  // them is done for its failures.
  bool hands_on_rows = false;
  const ElementCells* cells = nullptr;  // of the new elements; the plan's
  // The rows of an element may lie in blocks (server/engine/read/row_block.h): none waits for long.
  bool makes_blocks = false;
  // Each element of its input is a cell, so that what lies in that may stay there.
  bool takes_cells = false;
  // Elements whose values fail are left out and listed, instead of ending the stream. Bytes that
  // cannot be had still end it.
  std::optional<IgnoredFailures> ignored;

  // How many every element makes, whatever its values; absent where that differs or is not known.
  std::optional<uint64_t> elements_of_each() const {
    if (ignored) return std::nullopt;
    return batch != nullptr ? 1 : split->elements_of_each();
  }
  bool one_to_one() const { return elements_of_each() == 1; }
  // How many elements of what it gives these references are.
  size_t NumElements(const RecordList& references) const {
    return hands_on_rows ? (references.empty() ? 0 : 1) : references.size();
  }
};

struct SectionTask {
  // Set by the front.
  const Section* section = nullptr;
  Position start;            // in front of the block's first record
  uint64_t rows_before = 0;  // of the block, in tasks before this one
  RecordList records;        // of the elements that it has of the block
  uint64_t rows = 0;
  uint64_t references = 0;  // records.size() at first
  uint64_t bytes = 0;       // of the records in cells or, once `counted`, of the elements
  bool counted = false;
  bool input_failed = false;  // behind the last record

  // Set by the worker, which gives the records back, unless it hands them on.
  MemoryCharge charge;  // of `elements`
  RecordList elements;
  uint64_t element_bytes = 0;
  struct Failure {
    size_t before = 0;  // elements in front of it
    SkippedPlace place;
  };
  std::vector<Failure> failures;  // that were skipped
  absl::Status error;             // behind the last element
  bool ends = false;              // the same

  std::atomic<bool> done{false};  // SYNC section-done
};

using SectionQueue = WorkQueue<SectionTask>;

// One worker's means of running sections.
class SectionRunner {
 public:
  // `sharing` as RowEvaluator has it.
  SectionRunner(RecordStore& store, FileTable& files, StageClock& clock,
                const PrefixMember* sharing = nullptr)
      : store_(store),
        cells_(store),
        evaluator_(files, clock, sharing),
        batches_(files, clock, sharing) {}

  // Does what the task asks and marks it done.
  void Run(SectionTask* task);

  // The same where others compute some of the rows, at these nodes (RowsAway). False when the task
  // has left for them: then it is gone on with, by the same call, when `task` is back, which
  // Ended() is told first.
  bool RunInParts(SectionTask* task, absl::Span<const WorkNode* const> nodes, AwayTasks& away,
                  AwayTask* away_task);
  void Ended(absl::Status status) { rows_away_.Ended(std::move(status)); }
  // Whose time the next call takes.
  void set_clock(StageClock& clock) { evaluator_.set_clock(clock); }

  // Cells that it has taken for elements to come.
  uint64_t spare_cells() const { return cells_.size(); }

  // Of each element that it adds to a task, the row of the task that it was made of is added there;
  // null: nowhere. Not of batches.
  void set_element_rows(std::vector<uint32_t>* rows) { element_rows_ = rows; }

 private:
  bool RunStrip(SectionTask* task, uint32_t first, uint32_t rows);
  // Of rows whose bytes are on their way. The same.
  bool RunFetched(SectionTask* task, uint32_t first, uint32_t rows);
  // The task is the front's again.
  void Finish(SectionTask* task);
  RowStatus RunRows(SectionTask* task, uint32_t first, uint32_t rows);
  // The same, which may throw where there is no memory.
  RowStatus RunRowsWithin(SectionTask* task, uint32_t first, uint32_t rows);
  // Adds what row `row` of the task has become, `count` elements of `columns` from `first` on, as
  // blocks. False, with nothing done, where it becomes none.
  bool AddBlocks(SectionTask* task, uint32_t row, absl::Span<const Column> columns, uint32_t first,
                 uint32_t count, const RecordRef& origin, uint64_t path);
  void RunBatch(SectionTask* task);
  // False when nothing follows in this task.
  bool Fail(SectionTask* task, uint32_t row, const absl::Status& status, int stage, bool loading);
  // Where such failures are left out, what was to be made of these records is.
  bool LeftOut(SectionTask* task, absl::Span<const RecordRef> element, const absl::Status& status,
               absl::string_view reason, bool loading);

  RecordStore& store_;
  CellCache cells_;
  RowEvaluator evaluator_;
  BlockRunner batches_;
  std::vector<uint32_t>* element_rows_ = nullptr;
  RowsAway rows_away_;
  uint32_t next_ = 0;  // of a task that goes in parts: the first row that is not done
  int failed_stage_ = 0;
  bool failed_loading_ = false;
};

}  // namespace penstock
