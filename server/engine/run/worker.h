// One worker of an executor: takes what is to be done, the most urgent first, does it, and sleeps
// when there is nothing.
//
//     WorkSite   what all workers of an executor share
//     Worker     one of them, with what it keeps for itself
//
// Threads:  a Worker is one thread's; a WorkSite is safe from any thread.
// Owns:     a Worker its means of reading and computing; a WorkSite nothing.
// Cost:     two or three atomic operations for each thing that is done.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/step_times.h"
#include "server/engine/compute/block_runner.h"
#include "server/engine/read/read_queue.h"
#include "server/engine/run/away_blocks.h"
#include "server/engine/run/function_times.h"
#include "server/engine/run/lent_steps.h"
#include "server/engine/run/step_assembler.h"
#include "server/engine/run/step_table.h"
#include "server/engine/run/work_trace.h"
#include "server/engine/run/worker_gauges.h"
#include "server/engine/run/worker_threads.h"
#include "server/engine/section/section.h"
#include "server/engine/tasks/away_tasks.h"
#include "server/engine/tasks/errands.h"
#include "server/engine/tasks/event.h"

namespace penstock {

struct WorkSite {
  // All of them the executor's.
  const PlanImpl& plan;
  BatchSink& sink;
  FileTable& files;
  RecordStore& store;
  ReadQueue& reads;
  SectionQueue& sections;
  Errands& errands;
  AwayTasks& away;
  AwayBlocks& blocks;                              // of the tasks whose rows others compute
  const std::vector<const WorkNode*>& away_nodes;  // of the plan's own work: where its blocks leave
  StepTable& steps;
  LentSteps& lent;
  StepAssembler& assembler;
  Event& work;  // what workers sleep at
  WorkerGauges& gauges;
  WorkTrace& trace;

  std::atomic<int> front_worker{0};  // who ran the front last
  std::atomic<bool> slot_waiter{false};

  // What the front has asked for.
  bool HasRequests() const {
    return !reads.empty() || !sections.empty() || !errands.empty() || !blocks.empty() ||
           !lent.empty();
  }
};

class Worker {
 public:
  // `sharing` as RowEvaluator has it. One that holds does what it takes only when it is told to:
  // FillHeld(), FinishHeld().
  Worker(WorkSite& site, int number, const PrefixMember* sharing, bool holds = false);

  // Until it is to end.
  void Run(const WorkerThreads& threads);

  // Does one thing, the most urgent first; false when there was none. `front` tells why the front
  // did not go forward. Reads come before tasks: they are few, and the front must not find them
  // undone when the tasks run out. The worker that ran the front last goes on with it and with the
  // reads while the others have tasks: what it has read and drawn stays in its core's cache.
  bool Once(FrontResult* front);

  // Of one that holds.
  bool has_held() const {
    return read_ != nullptr || section_ != nullptr || errand_ != nullptr || task_;
  }
  // Fills the block that it holds; false without one that is not filled yet.
  bool FillHeld();
  // Does the rest of what it holds; false when that is nothing.
  bool FinishHeld();
  // Does all reads, sections and errands that nobody has taken.
  void RunRequests();
  // Cells that it has taken and that no record lies in yet.
  uint64_t spare_cells() const { return reader_.spare_cells() + section_runner_.spare_cells(); }

 private:
  // A block or a section, traced with its stages and their functions while somebody asks for that.
  class Watched {
   public:
    Watched(Worker& worker, WorkKind kind, uint64_t detail);
    ~Watched();
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

   private:
    Worker& worker_;
    const WorkKind kind_;
    const uint64_t detail_;
    const uint64_t begin_;
    const StepTimes::Scope functions_;
  };

  void RunUntilOver(const WorkerThreads& threads);
  void WaitForSlot();
  bool RunBlock();
  // A step that others have made, or did not make; and one that they are to make.
  bool RunLent();
  // As many as take some kTaskTicks, as far as it knows.
  uint32_t GrainsOfTask() const;
  void Learn(uint64_t ticks_a_row);
  // Returns how many rows it has.
  uint32_t Fill(const BlockTask& task);
  void Finish(const BlockTask& task);
  void Finish(Step* step);
  bool RunSection();
  void Finish(SectionTask* task);
  // Goes on with a task that has been away.
  bool RunBack();
  void GoOn(AwayBlock* block);
  bool RunErrand();
  void Finish(Errand* errand);
  bool RunRead();
  void Finish(ReadRequest* request);

  WorkSite& site_;
  const int number_;
  const bool holds_;
  StageClock& clock_;
  BlockRunner runner_;
  ChunkReader reader_;
  SectionRunner section_runner_;
  // Of what is traced: the stages' clocks in front of it, and its functions.
  std::vector<uint64_t> ticks_before_;
  FunctionTimes function_times_;
  uint64_t row_ticks_ = 0;  // what a row took lately; 0: not known yet

  // What it holds: one of them.
  ReadRequest* read_ = nullptr;
  SectionTask* section_ = nullptr;
  Errand* errand_ = nullptr;
  std::optional<BlockTask> task_;
  bool task_is_filled_ = false;
};

}  // namespace penstock
