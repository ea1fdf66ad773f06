#include "server/engine/run/executor.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "base/memory_account.h"
#include "base/stop_flag.h"
#include "base/tick_clock.h"
#include "server/engine/compute/rows_away.h"
#include "server/engine/keep/kept_gauge.h"
#include "server/engine/order/away_work_op.h"
#include "server/engine/order/pack_gauge.h"
#include "server/engine/plan/plan_impl.h"
#include "server/engine/read/read_queue.h"
#include "server/engine/run/away_blocks.h"
#include "server/engine/run/lent_steps.h"
#include "server/engine/run/step_assembler.h"
#include "server/engine/run/step_table.h"
#include "server/engine/run/stepped_executor.h"
#include "server/engine/run/stepped_worker.h"
#include "server/engine/run/worker.h"
#include "server/engine/run/worker_gauges.h"
#include "server/engine/run/worker_placement.h"
#include "server/engine/run/worker_threads.h"
#include "server/engine/section/section.h"
#include "server/engine/share/shared_prefixes.h"
#include "server/engine/tasks/away_tasks.h"
#include "server/engine/tasks/calls_under_way.h"
#include "server/engine/tasks/errands.h"

namespace penstock {
namespace {

// Puts the parts together: threads (WorkerThreads) in which workers (Worker) run the front
// (StepAssembler), read, and fill the steps in flight (StepTable).
class ExecutorImpl final : public SteppedExecutor {
 public:
  ExecutorImpl(std::shared_ptr<const PlanImpl> plan, BatchSink& sink,
               const ExecutorOptions& options)
      : plan_(std::move(plan)),
        sink_(sink),
        memory_(options.memory),
        read_deadline_ns_(options.read_deadline_ns),
        indices_(options.start.step > 0 ? plan_->KeepIndices() : nullptr),
        files_(plan_->files(), plan_->manifest(), IndexBuilding::kWhenAsked, &plan_->indices(),
               options.notice),
        away_(work_, plan_->stage_names().size()),
        errands_(away_),
        kept_gauges_(plan_->stage_names().size()),
        pack_gauges_(plan_->stage_names().size()),
        sharing_(options.prefixes != nullptr
                     ? options.prefixes->Join(options.pipeline, PlanImpl::WorkOf(plan_))
                     : nullptr),
        placement_(options.worker_nice, options.processors, options.not_bound),
        worker_gauges_(plan_->stage_names(), WorkerPlacement::MaxWorkers(options.workers)),
        steps_(options.start.step,
               (plan_->program().computed_rows() + plan_->grain_rows() - 1) / plan_->grain_rows(),
               options.at_limit, sink_, worker_gauges_),
        assembler_({*plan_, files_, store_, reads_, sections_, errands_, damage_,
                    kept_gauges_.data(), pack_gauges_.data(), stop_, steps_, work_},
                   options),
        blocks_(store_, files_),
        away_nodes_(RowsAway::NodesOf(plan_->work())),
        all_away_nodes_(RowsAway::AllNodesOf(plan_->work())),
        lender_(LenderOf(plan_, options)),
        lent_(lender_.get(), steps_, away_),
        site_{*plan_,  sink_,       files_, store_, reads_,     sections_, errands_,       away_,
              blocks_, away_nodes_, steps_, lent_,  assembler_, work_,     worker_gauges_, trace_},
        threads_(
            options.workers > 0 ? options.workers : placement_.DefaultWorkers(),
            WorkerPlacement::MaxWorkers(options.workers),
            [this](int worker) {
              const MemoryAccount::Scope charged(memory_.get());
              const StopFlag::Scope stops(&stop_);
              placement_.Apply();
              Worker(site_, worker, sharing_.get()).Run(threads_);
            },
            stop_, work_, sink_, worker_gauges_, read_deadline_ns_) {
    files_.SetStages(plan_->stage_names().size());
    files_.KeepMaps(options.maps);
    SetReadAhead(options.read_ahead);
    // A worker that waits for a slot is needed for what comes back.
    const auto wake = [this] {
      if (site_.slot_waiter.load()) sink_.Interrupt();
    };
    blocks_.AlsoWake(wake);
    lent_.AlsoWake(wake);
    assembler_.set_workers(threads_.number());
  }
  ~ExecutorImpl() override { Stop(); }

  absl::Status Restore(const Position& position) {
    const MemoryAccount::Scope charged(memory_.get());
    return assembler_.Restore(position);
  }

  absl::Status Start() override { return threads_.Start(); }
  void Stop() override {
    Cancel();
    threads_.Stop();
    away_.WaitForAll();
  }
  bool TryStop() override {
    Cancel();
    if (threads_.TryStop() && away_.WaitForAll(threads_.hung_read_ns())) return true;
    // Whoever comes back publishes nothing.
    steps_.Close();
    return false;
  }
  void Cancel() override {
    stop_.store(true);
    away_.Cancel();
  }
  bool HasEnded() const override { return threads_.HaveEnded() && away_.size() == 0; }
  void EndAtHungRead() override;

  uint64_t Hold() override { return assembler_.Hold(); }
  void Release() override {
    if (assembler_.Release()) work_.NotifyAll();
  }
  void SetLimit(uint64_t step) override {
    steps_.SetLimit(step);
    steps_.Commit();
    // Behind a limit that was lifted there is more to do.
    work_.NotifyAll();
  }
  void SetPassLimit(uint64_t pass) override { assembler_.SetPassLimit(pass); }
  uint64_t pass() const override { return assembler_.pass(); }
  uint64_t limit() const override { return steps_.limit(); }
  bool KnowsEnd() const override { return steps_.KnowsEnd(); }
  Position AtLimit() const override { return assembler_.AtLimit(); }

  absl::Status SetWorkers(int workers) override {
    absl::Status status = threads_.SetNumber(workers);
    assembler_.set_workers(threads_.number());
    return status;
  }
  int max_workers() const override { return threads_.max_number(); }
  void SetReadAhead(const std::map<std::string, int64_t>& bytes) override;

  bool StartTrace() override {
    if (!trace_.Begin()) return false;
    trace_begin_ns_.store(MonotonicNanos(), std::memory_order_relaxed);
    return true;
  }
  WorkSpans StopTrace() override;
  ExecutorStats Snapshot() const override;
  std::vector<WorkerPulse> Pulses() const override {
    return worker_gauges_.Pulses(threads_.number());
  }
  std::vector<SkippedPlace> Skipped() const override { return damage_.places(); }

  void BeginSteps() override;
  Stepped StepWorker(int worker) override { return stepped_[worker]->Step(stop_); }
  uint64_t GiveBack() override;

 private:
  // Null where nobody else makes its steps.
  static std::unique_ptr<StepLender> LenderOf(std::shared_ptr<const Plan> plan,
                                              const ExecutorOptions& options) {
    if (options.helpers == nullptr) return nullptr;
    return options.helpers->Make(std::move(plan),
                                 {options.fingerprint, options.start, options.skip_steps,
                                  options.start_pass, options.notice});
  }
  // Of workers, of the threads that do errands, and of those who do what is away.
  std::vector<CallUnderWay> CallsUnderWay(uint64_t ns_min) const;

  // Constant after construction.
  const std::shared_ptr<const PlanImpl> plan_;
  BatchSink& sink_;
  const std::shared_ptr<MemoryAccount> memory_;  // may be null
  const uint64_t read_deadline_ns_;              // 0: none

  // Own synchronisation.
  const std::shared_ptr<void> indices_;  // what a resume needs has just been loaded for its check
  FileTable files_;
  RecordStore store_;
  ReadQueue reads_;
  SectionQueue sections_;
  Event work_;
  AwayTasks away_;
  Errands errands_;
  DamageLog damage_;
  std::vector<KeptGauge> kept_gauges_;           // one a stage
  std::vector<PackGauge> pack_gauges_;           // the same
  const std::unique_ptr<PrefixMember> sharing_;  // may be null
  WorkerPlacement placement_;
  WorkerGauges worker_gauges_;
  WorkTrace trace_;
  std::atomic<uint64_t> trace_begin_ns_{0};
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> looked_at_ns_{0};  // for hung reads, last
  StepTable steps_;
  StepAssembler assembler_;
  AwayBlocks blocks_;
  const std::vector<const WorkNode*> away_nodes_;
  const std::vector<const WorkNode*> all_away_nodes_;  // with those of sections
  const std::unique_ptr<StepLender> lender_;           // may be null
  LentSteps lent_;
  WorkSite site_;
  WorkerThreads threads_;

  std::vector<std::unique_ptr<SteppedWorker>> stepped_;  // one a worker, or none
};

void ExecutorImpl::EndAtHungRead() {
  if (read_deadline_ns_ == 0 || steps_.finished()) return;
  // Behind a longer pause the whole process may have stood still, and its reads with it.
  constexpr uint64_t kPauseNs = 2'000'000'000;
  const uint64_t now_ns = MonotonicNanos();
  if (now_ns - looked_at_ns_.exchange(now_ns, std::memory_order_relaxed) > kPauseNs) return;
  const auto oldest = OldestRead(CallsUnderWay(read_deadline_ns_));
  if (oldest) steps_.Fail(ReadDeadlineError(*oldest, read_deadline_ns_));
}

std::vector<CallUnderWay> ExecutorImpl::CallsUnderWay(uint64_t ns_min) const {
  std::vector<CallUnderWay> calls = worker_gauges_.CallsUnderWay(ns_min);
  for (CallUnderWay& call : errands_.CallsUnderWay(worker_gauges_.scale(), ns_min))
    calls.push_back(std::move(call));
  for (CallUnderWay& call : away_.CallsUnderWay(ns_min)) calls.push_back(std::move(call));
  return calls;
}

void ExecutorImpl::SetReadAhead(const std::map<std::string, int64_t>& bytes) {
  const std::vector<std::string>& names = plan_->stage_names();
  for (size_t stage = 0; stage < names.size(); ++stage) {
    auto found = bytes.find(names[stage]);
    if (found == bytes.end()) found = bytes.find("");
    files_.SetReadAhead(stage, found == bytes.end() ? FileTable::kDefaultReadAhead : found->second);
  }
}

ExecutorStats ExecutorImpl::Snapshot() const {
  ExecutorStats stats;
  steps_.Fill(&stats);
  stats.workers = threads_.number();
  worker_gauges_.Fill(&stats);
  const std::vector<CallUnderWay> calls = CallsUnderWay(kSlowCallNs);
  stats.oldest_read = OldestRead(calls);
  stats.oldest_write = OldestWrite(calls);
  stats.oldest_work = OldestWork(calls);
  stats.tasks_away = away_.size();
  stats.bytes_read += files_.bytes_read();
  stats.skipped = damage_.count();
  for (size_t stage = 0; stage < stats.stages.size(); ++stage) {
    StageStats& row = stats.stages[stage];
    row.away_ns = away_.NanosOf(static_cast<int>(stage));
    row.read_ahead = files_.ReadAhead(stage);
    const KeptGauge& kept = kept_gauges_[stage];
    row.kept = {KeptStateName(kept.state.load(std::memory_order_relaxed)),
                kept.elements.load(std::memory_order_relaxed),
                kept.bytes.load(std::memory_order_relaxed),
                kept.hits.load(std::memory_order_relaxed)};
    const PackGauge& packed = pack_gauges_[stage];
    row.packed = {packed.sequences.load(std::memory_order_relaxed),
                  packed.tokens.load(std::memory_order_relaxed),
                  packed.padding.load(std::memory_order_relaxed),
                  packed.documents.load(std::memory_order_relaxed),
                  packed.pieces.load(std::memory_order_relaxed)};
  }
  for (const WorkNode* const node : all_away_nodes_)
    stats.stages[node->stages.back()].away_workers = node->op->away()->workers();
  stats.records = stats.stages[0].elements;
  if (sharing_ != nullptr) stats.shared = sharing_->Stats();
  if (lender_ != nullptr) stats.helpers = lender_->Helpers();
  return stats;
}

WorkSpans ExecutorImpl::StopTrace() {
  WorkSpans ended = trace_.End(worker_gauges_.scale());
  const uint64_t begin_ns = trace_begin_ns_.load(std::memory_order_relaxed);
  for (const WorkNode* const node : all_away_nodes_) {
    for (const AwaySpan& span : node->op->away()->SpansSince(begin_ns)) {
      ended.spans.push_back({.begin = span.begin_ns - std::min(span.begin_ns, begin_ns),
                             .end = span.end_ns - begin_ns,
                             .detail = static_cast<uint64_t>(node->stages.back()),
                             .worker = span.process,
                             .kind = WorkKind::kAway});
    }
  }
  return ended;
}

void ExecutorImpl::BeginSteps() {
  errands_.DoInPlace();
  for (int i = 0; i < max_workers(); ++i)
    stepped_.push_back(std::make_unique<SteppedWorker>(site_, i));
}

uint64_t ExecutorImpl::GiveBack() {
  assembler_.GiveBackSteps();
  stepped_[0]->worker().RunRequests();
  assembler_.GiveBackOps();
  uint64_t cells = store_.cells();
  for (const std::unique_ptr<SteppedWorker>& stepped : stepped_)
    cells -= stepped->worker().spare_cells();
  return cells;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(std::shared_ptr<const Plan> plan,
                                                           BatchSink& sink,
                                                           const ExecutorOptions& options) {
  return SteppedExecutor::Create(std::move(plan), sink, options);
}

absl::StatusOr<std::unique_ptr<SteppedExecutor>> SteppedExecutor::Create(
    std::shared_ptr<const Plan> plan, BatchSink& sink, const ExecutorOptions& options) {
  const MemoryAccount::Scope charged(options.memory.get());
  auto executor = std::make_unique<ExecutorImpl>(
      std::static_pointer_cast<const PlanImpl>(std::move(plan)), sink, options);
  // The beginning has no counters. Steps do not tell: a steered stream may go back to it at any of
  // them, and begin anywhere at step 0.
  if (!options.start_pass && !options.start.position.counters().empty()) {
    absl::Status status = executor->Restore(options.start.position);
    if (!status.ok()) return status;
  }
  return executor;
}

}  // namespace penstock
