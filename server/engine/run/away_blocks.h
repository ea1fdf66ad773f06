// Blocks of steps, and tasks of sections, that a worker has begun and that go on when others have
// computed some of their rows (rows_away.h), or when bytes have come from other machines
// (far_records.h).
//
//     AwayBlock    one of them, with all that its work needs
//     AwayBlocks   those of one executor: where a worker takes one for a task, and where it finds
//                  those that are back
//
// Threads:  an AwayBlock belongs to the worker that has it, else to whoever computes its rows; an
//           AwayBlocks is safe from any thread.
// Owns:     an AwayBlock its evaluator, with the rows' memory, which no worker's own is; an
//           AwayBlocks all of them, for the next tasks.
// Limits:   as many as have been away at a time: the blocks of the steps that have slots, and what
//           sections have ahead.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "server/engine/compute/block_runner.h"
#include "server/engine/compute/far_records.h"
#include "server/engine/run/back_queue.h"
#include "server/engine/run/step_table.h"
#include "server/engine/section/section.h"
#include "server/engine/tasks/away_tasks.h"

namespace penstock {

class AwayBlock;
using AwayBlockQueue = BackQueue<AwayBlock>;

class AwayBlock final : public AwayTask {
 public:
  // `has_far_files`: there may be bytes to fetch.
  AwayBlock(RecordStore& store, FileTable& files, StageClock& clock, AwayBlockQueue& back,
            bool has_far_files)
      : files_(files),
        has_far_files_(has_far_files),
        back_(back),
        block_runner_(files, clock),
        section_runner_(store, files, clock) {}

  // What it is about: one of the two.
  std::optional<BlockTask> block;
  SectionTask* section = nullptr;

  // By a worker, whose clock is charged. They go on with the task; false when it has left again,
  // and nothing here is the worker's any more.
  bool RunBlock(const BatchProgram& program, absl::Span<const WorkNode* const> nodes,
                uint32_t grain_rows, AwayTasks& away, StageClock& clock);
  bool RunSection(absl::Span<const WorkNode* const> nodes, AwayTasks& away, StageClock& clock);

  void Ended(absl::Status status) override;
  // Its task is done: the bytes are not needed any more.
  void EndFetching() {
    has_fetched_ = !has_far_files_;
    far_.Reset();
  }

 private:
  // Whether it has left for the bytes of these records.
  bool Fetches(absl::Span<const RecordRef> records, AwayTasks& away);

  FileTable& files_;
  const bool has_far_files_;
  AwayBlockQueue& back_;
  FarRecords far_;
  bool has_fetched_ = !has_far_files_;
  BlockRunner block_runner_;
  SectionRunner section_runner_;
};

class AwayBlocks {
 public:
  AwayBlocks(RecordStore& store, FileTable& files)
      : store_(store), files_(files), has_far_files_(FarRecords::AnyIn(files)) {}

  // As BackQueue has it.
  void AlsoWake(std::function<void()> wake) { back_.AlsoWake(std::move(wake)); }

  // Whether blocks leave for bytes of other machines.
  bool has_far_files() const { return has_far_files_; }

  // One for a task of that worker's.
  AwayBlock* Take(StageClock& clock);
  // Its task is done.
  void Give(AwayBlock* block);

  // Of those that are back, the first.
  AwayBlock* Pop() { return back_.Pop(); }
  bool empty() const { return back_.empty(); }

 private:
  RecordStore& store_;
  FileTable& files_;
  const bool has_far_files_;
  AwayBlockQueue back_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<AwayBlock>> all_;  // under mutex_, as those below
  std::vector<AwayBlock*> idle_;
};

}  // namespace penstock
