#include "server/engine/executor.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/new_thread.h"
#include "server/base/numa_node.h"
#include "server/base/processors.h"
#include "server/engine/block_runner.h"
#include "server/engine/event.h"
#include "server/engine/front.h"
#include "server/engine/kept_gauge.h"
#include "server/engine/plan_impl.h"
#include "server/engine/read_queue.h"
#include "server/engine/segment.h"
#include "server/engine/shared_prefixes.h"
#include "server/engine/stepped_executor.h"
#include "server/engine/worker_gauges.h"

namespace penstock {
namespace {

// Steps in flight at most: every slot of a ring, and those assembled ahead of a slot.
constexpr uint64_t kMaxSteps = 128;
// Steps assembled before there is a slot for them, so that a freed slot is filled at once.
constexpr uint64_t kStepsAhead = 2;
constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
constexpr int kSpins = 50;
// So many reads are too many to wait for the worker that runs the front.
constexpr size_t kReadsForAll = 3;
// What a running executor may be given at the most: each needs a place for its statistics.
constexpr int kWorkersPerProcessor = 4;
constexpr int kWorkersAlways = 16;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// What a run of the front led to.
enum class FrontResult {
  kForward,   // something was assembled or claimed
  kStuck,     // a read is under way, enough is assembled, or the stream is over
  kRingFull,  // an assembled step has no slot
};

// Affinity and cgroup may change while the process runs; so that its pipelines have the same, they are looked at once.
int Processors() {
  static const int processors = ThreadsFor(UsableProcessors());
  return processors;
}

int DefaultWorkers(const std::vector<int>& on) {
  return on.empty() ? Processors() : std::min(Processors(), static_cast<int>(on.size()));
}

// A step passes four counters, each written in one place: assembled (front) >= claimed (front) >=
// committed (commit) >= recycled (front). Workers deal themselves tasks by two more: task t is
// a block of step first_step + t / blocks_per_step, the first or the last one that is left there.
class ExecutorImpl final : public SteppedExecutor {
 public:
  ExecutorImpl(std::shared_ptr<const PlanImpl> plan, BatchSink& sink,
               const ExecutorOptions& options)
      : plan_(std::move(plan)),
        sink_(sink),
        nice_(options.worker_nice),
        processors_(options.processors),
        not_bound_(options.not_bound),
        read_deadline_ns_(options.read_deadline_ns),
        num_workers_(options.workers > 0 ? options.workers : DefaultWorkers(options.processors)),
        max_workers_(
            std::max({options.workers, kWorkersAlways, kWorkersPerProcessor * Processors()})),
        skip_steps_(options.skip_steps),
        at_limit_(options.at_limit),
        blocks_per_step_((plan_->batch_rows() + plan_->block_rows() - 1) / plan_->block_rows()),
        first_step_(options.start.step),
        cursors_(options.fingerprint),
        indices_(options.start.step > 0 ? plan_->KeepIndices() : nullptr),
        files_(plan_->files(), plan_->manifest(), IndexBuilding::kWhenAsked, &plan_->indices(),
               options.notice),
        gauges_(plan_->stage_names().size()),
        sharing_(options.prefixes != nullptr ? options.prefixes->Join(options.pipeline, plan_)
                                             : nullptr),
        worker_gauges_(plan_->stage_names(), max_workers_),
        front_(*plan_, files_, store_, reads_, segments_, damage_, stop_),
        assembled_(first_step_),
        recycled_(first_step_),
        last_position_(options.start.position) {
    front_.set_gauges(gauges_.data());
    files_.SetStages(plan_->stage_names().size());
    source_reads_ = std::vector<SourceReads>(plan_->stage_names().size());
    SetReadAhead(options.read_ahead);
    if (options.start_pass) front_.BeginPass(*options.start_pass);
    claimed_.store(first_step_);
    committed_.store(first_step_);
    published_.store(first_step_);
  }
  ~ExecutorImpl() override { Stop(); }

  absl::Status Restore(const Position& position) { return front_.Restore(position); }

  absl::Status Start() override {
    std::lock_guard<std::mutex> lock(threads_mutex_);
    started_ = true;
    absl::Status status = AddThreads();
    if (!status.ok()) {
      stop_.store(true);
      RemoveThreads(0);
    }
    return status;
  }

  void Stop() override {
    stop_.store(true);
    std::lock_guard<std::mutex> lock(threads_mutex_);
    RemoveThreads(0);
  }
  bool TryStop() override;
  void Cancel() override { stop_.store(true); }
  bool HasEnded() const override {
    std::lock_guard<std::mutex> lock(running_mutex_);
    return std::find(running_.begin(), running_.end(), true) == running_.end();
  }
  void EndAtHungRead() override;

  uint64_t Hold() override {
    const std::unique_lock<std::mutex> lock = LockFront();
    if (!lock.owns_lock()) return published_.load(std::memory_order_relaxed);
    ++holds_;
    return assembled_;
  }
  void Release() override {
    {
      const std::unique_lock<std::mutex> lock = LockFront();
      if (!lock.owns_lock()) return;
      --holds_;
    }
    work_.NotifyAll();
  }
  void SetLimit(uint64_t step) override {
    limit_.store(step, std::memory_order_release);  // SYNC stream-limit
    Commit();
  }
  void SetPassLimit(uint64_t pass) override {
    const std::unique_lock<std::mutex> lock = LockFront();
    if (lock.owns_lock()) pass_limit_ = pass;
  }
  uint64_t pass() const override {
    const std::unique_lock<std::mutex> lock = LockFront();
    return lock.owns_lock() ? front_.pass() : 0;
  }
  uint64_t limit() const override { return limit_.load(std::memory_order_acquire); }
  void SetReadAhead(const std::map<std::string, int64_t>& bytes) override;
  bool KnowsEnd() const override { return end_step_.load(std::memory_order_acquire) != kNever; }
  Position AtLimit() const override {
    std::lock_guard<std::mutex> lock(front_mutex_);
    return last_position_;
  }
  absl::Status SetWorkers(int workers) override;
  int max_workers() const override { return max_workers_; }
  bool StartTrace() override { return trace_.Begin(); }
  WorkSpans StopTrace() override { return trace_.End(worker_gauges_.scale()); }

  ExecutorStats Snapshot() const override;
  std::vector<WorkerPulse> Pulses() const override {
    return worker_gauges_.Pulses(num_workers_.load());
  }
  std::vector<SkippedPlace> Skipped() const override { return damage_.places(); }

  void BeginSteps() override;
  Stepped StepWorker(int worker) override;
  uint64_t GiveBack() override;

 private:
  struct Task {
    Step* step;
    uint32_t block;
  };

  // What one worker keeps for itself.
  struct WorkerTools {
    StageClock& clock;
    BlockRunner runner;
    ChunkReader reader;
    SegmentRunner segments;
    // Of a worker that is stepped: what it has taken, and how far it is with going to sleep.
    bool stepped = false;
    std::optional<Task> task = std::nullopt;
    bool task_is_filled = false;
    ReadRequest* read = nullptr;
    SegmentTask* segment = nullptr;
    std::optional<Event::Ticket> ticket = std::nullopt;
    bool asleep = false;
    bool waits_for_slot = false;
    int worker = 0;
    std::vector<uint64_t> ticks_before = {};  // of the stages, in front of a block that is traced
  };

  // What the reads of a source have brought, and the time that they took.
  struct SourceReads {
    std::atomic<uint64_t> bytes{0};
    std::atomic<uint64_t> ticks{0};
  };

  void Work(int worker);
  void Bind();
  // The front's mutex, but for where it is not free and the stream is over, as its front may hang in a read.
  std::unique_lock<std::mutex> LockFront() const;
  bool IsRunning(int worker) const;
  void SetRunning(int worker, bool running);
  // Wakes the workers from that number on, whom their number or stop_ has told to end, and waits for them: false once those that are
  // left hang in a read. REQUIRES: threads_mutex_
  bool WaitForEnd(int first);
  absl::Status AddThreads();  // REQUIRES: threads_mutex_
  // Waits for the last ones, whom their number or stop_ has told to end. REQUIRES: threads_mutex_
  void RemoveThreads(size_t left);
  void WakeAll() {
    work_.NotifyAll();
    sink_.Interrupt();
  }
  bool WorkOnce(WorkerTools& tools, FrontResult* front);
  bool WantsFront(bool at_home) const;
  FrontResult RunFront(StageClock& clock);
  bool Assemble();
  // The pass limit is where the step that would be assembled next begins.
  void EndPass();
  bool Claim();
  bool RunTask(WorkerTools& tools);
  void FillBlock(BlockRunner& runner, Task task);
  void FinishBlock(BlockRunner& runner, Task task);
  bool RunSegment(WorkerTools& tools);
  void FinishSegment(SegmentRunner& runner, SegmentTask* task);
  bool RunRead(WorkerTools& tools);
  void FinishRead(WorkerTools& tools, ReadRequest* request);
  void WaitForSlot();
  void Commit();

  bool HasTasks() const {
    return tasks_.load(std::memory_order_relaxed) < tasks_limit_.load(std::memory_order_relaxed);
  }

  // What the front has asked for.
  bool HasRequests() const { return !reads_.empty() || !segments_.empty(); }

  // Constant after construction.
  const std::shared_ptr<const PlanImpl> plan_;
  BatchSink& sink_;
  const int nice_;
  const std::vector<int> processors_;
  const std::function<void(const absl::Status&)> not_bound_;
  std::atomic<bool> told_not_bound_{false};
  const uint64_t read_deadline_ns_;  // 0: none
  std::atomic<int> num_workers_;     // written under threads_mutex_
  const int max_workers_;
  const uint64_t skip_steps_;
  const std::function<void()> at_limit_;
  const uint64_t blocks_per_step_;
  const uint64_t first_step_;
  const CursorMaker cursors_;

  // Own synchronisation.
  const std::shared_ptr<void> indices_;  // what a resume needs has just been loaded for its check
  FileTable files_;
  RecordStore store_;
  ReadQueue reads_;
  SegmentQueue segments_;
  DamageLog damage_;
  std::vector<KeptGauge> gauges_;                // one a stage
  std::vector<SourceReads> source_reads_;        // one a stage
  const std::unique_ptr<PrefixMember> sharing_;  // may be null
  Event work_;
  WorkerGauges worker_gauges_;
  std::array<std::atomic<Step*>, kMaxSteps> steps_{};
  std::atomic<uint64_t> tasks_{0};        // dealt to workers so far
  std::atomic<uint64_t> tasks_limit_{0};  // SYNC tasks-ready
  std::atomic<uint64_t> claimed_{0};
  std::atomic<uint64_t> committed_{0};      // SYNC step-committed
  std::atomic<uint64_t> end_step_{kNever};  // SYNC stream-end: the first step that does not exist
  std::atomic<uint64_t> limit_{kNever};     // SYNC stream-limit: the first that another one makes
  std::atomic<bool> finished_{false};       // written under commit_mutex_
  std::atomic<bool> slot_waiter_{false};
  std::atomic<int> front_worker_{0};  // who ran the front last
  std::atomic<bool> stop_{false};
  std::atomic<bool> ended_at_hung_read_{false};
  std::atomic<uint64_t> looked_at_ns_{0};  // for hung reads, last
  std::atomic<uint64_t> bytes_read_{0};
  std::atomic<uint64_t> published_{0};  // for statistics alone, as those below
  std::atomic<uint64_t> rows_{0};
  std::atomic<uint64_t> epoch_{0};
  WorkTrace trace_;

  // Under front_mutex_.
  mutable std::mutex front_mutex_;
  Front front_;
  std::vector<std::unique_ptr<Step>> all_steps_;
  std::vector<Step*> idle_steps_;
  Step* partial_ = nullptr;  // being assembled
  uint64_t assembled_;
  uint64_t recycled_;
  absl::Status end_status_;  // written before end_step_
  int holds_ = 0;
  uint64_t pass_limit_ = kNever;
  uint64_t skipped_ = 0;    // of skip_steps_
  Position last_position_;  // behind the step that was assembled last

  // Under commit_mutex_.
  mutable std::mutex commit_mutex_;
  bool limit_told_ = false;

  // Under threads_mutex_.
  std::mutex threads_mutex_;
  bool started_ = false;
  std::vector<std::thread> threads_;

  mutable std::mutex running_mutex_;
  std::condition_variable running_changed_;
  std::vector<bool> running_;  // under running_mutex_: one a thread that was started

  std::vector<std::unique_ptr<WorkerTools>> stepped_;  // one a worker, or none
};

void ExecutorImpl::Work(int worker) {
  setpriority(PRIO_PROCESS, 0, nice_);  // of this thread alone, on Linux
  Bind();
  StageClock& clock = worker_gauges_.clock(worker);
  WorkerTools tools{clock, BlockRunner(files_, clock, sharing_.get()), ChunkReader(store_),
                    SegmentRunner(store_, files_, clock, sharing_.get())};
  tools.worker = worker;
  const CallSpot::OfThisThread spot(worker_gauges_.pulse(worker).call);
  WorkerGauges::Pulse& pulse = worker_gauges_.pulse(worker);
  pulse.thread.store(gettid(), std::memory_order_relaxed);
  uint64_t beats = 0;
  FrontResult front = FrontResult::kStuck;
  const auto is_over = [this, worker] {
    return stop_.load() || worker >= num_workers_.load(std::memory_order_seq_cst);
  };
  while (!is_over()) {
    pulse.beats.store(++beats, std::memory_order_relaxed);
    if (WorkOnce(tools, &front)) continue;
    for (int spin = 0; spin < kSpins && !HasTasks() && !HasRequests(); ++spin) Pause();
    // The last look before sleeping comes behind the ticket: what changes after it wakes us at
    // once.
    const Event::Ticket ticket = work_.Prepare();
    const uint64_t begin = trace_.Now();
    if (is_over() || WorkOnce(tools, &front)) {
      work_.Cancel();
    } else if (front == FrontResult::kRingFull && !slot_waiter_.exchange(true)) {
      work_.Cancel();
      pulse.idle.store(true, std::memory_order_relaxed);
      WaitForSlot();
      pulse.idle.store(false, std::memory_order_relaxed);
      slot_waiter_.store(false);
      trace_.Add(tools.worker, WorkKind::kWaitForSlot, begin);
    } else {
      pulse.idle.store(true, std::memory_order_relaxed);
      work_.Wait(ticket);
      pulse.idle.store(false, std::memory_order_relaxed);
      trace_.Add(tools.worker, WorkKind::kSleep, begin);
    }
  }
}

// Of this thread alone. What it touches first is then near it, too: records, cells, columns.
void ExecutorImpl::Bind() {
  if (processors_.empty()) return;
  const absl::Status status = RunOn(processors_);
  if (!status.ok() && !told_not_bound_.exchange(true) && not_bound_ != nullptr) not_bound_(status);
}

absl::Status ExecutorImpl::AddThreads() {
  for (int i = 0; i < num_workers_.load(); ++i) {
    const bool is_new = i == std::ssize(threads_);
    if (!is_new && IsRunning(i)) continue;
    if (!is_new && threads_[i].joinable()) threads_[i].join();
    SetRunning(i, true);
    absl::StatusOr<std::thread> thread =
        NewThread(absl::StrCat("worker ", i + 1, " of ", num_workers_.load()), [this, i] {
          Work(i);
          SetRunning(i, false);
        });
    if (!thread.ok()) {
      SetRunning(i, false);
      return thread.status();
    }
    if (is_new) threads_.emplace_back();
    threads_[i] = *std::move(thread);
  }
  return absl::OkStatus();
}

bool ExecutorImpl::IsRunning(int worker) const {
  std::lock_guard<std::mutex> lock(running_mutex_);
  return running_[worker];
}

void ExecutorImpl::SetRunning(int worker, bool running) {
  std::lock_guard<std::mutex> lock(running_mutex_);
  running_.resize(std::max<size_t>(running_.size(), worker + 1));
  running_[worker] = running;
  running_changed_.notify_all();
}

bool ExecutorImpl::WaitForEnd(int first) {
  constexpr auto kLook = std::chrono::milliseconds(20);
  const uint64_t hung_ns =
      read_deadline_ns_ == 0 ? kHungReadNs : std::min(kHungReadNs, read_deadline_ns_);
  WakeAll();
  std::unique_lock<std::mutex> lock(running_mutex_);
  while (true) {
    bool all_hang = true;
    bool any = false;
    for (int i = first; i < std::ssize(running_); ++i) {
      if (!running_[i]) continue;
      any = true;
      const std::optional<CallSeen> call = worker_gauges_.pulse(i).call.Look();
      all_hang = all_hang && call && worker_gauges_.scale().ToNanos(call->ticks) >= hung_ns;
    }
    if (!any) return true;
    if (all_hang) return false;
    running_changed_.wait_for(lock, kLook);
  }
}

std::unique_lock<std::mutex> ExecutorImpl::LockFront() const {
  constexpr auto kLook = std::chrono::microseconds(100);
  std::unique_lock<std::mutex> lock(front_mutex_, std::try_to_lock);
  while (!lock.owns_lock() && !stop_.load() && !ended_at_hung_read_.load()) {
    std::this_thread::sleep_for(kLook);
    lock.try_lock();
  }
  return lock;
}

bool ExecutorImpl::TryStop() {
  stop_.store(true);
  std::lock_guard<std::mutex> lock(threads_mutex_);
  if (WaitForEnd(0)) {
    RemoveThreads(0);
    return true;
  }
  // Whoever comes back publishes nothing.
  std::lock_guard<std::mutex> commit_lock(commit_mutex_);
  finished_.store(true, std::memory_order_relaxed);
  return false;
}

void ExecutorImpl::EndAtHungRead() {
  if (read_deadline_ns_ == 0 || finished_.load(std::memory_order_relaxed)) return;
  // Behind a longer pause the whole process may have stood still, and its reads with it.
  constexpr uint64_t kPauseNs = 2'000'000'000;
  const uint64_t now_ns = MonotonicNanos();
  if (now_ns - looked_at_ns_.exchange(now_ns, std::memory_order_relaxed) > kPauseNs) return;
  const auto oldest = OldestOf(worker_gauges_.ReadsUnderWay(read_deadline_ns_));
  if (!oldest) return;
  std::lock_guard<std::mutex> lock(commit_mutex_);
  if (finished_.load(std::memory_order_relaxed)) return;
  sink_.Finish(ReadDeadlineError(*oldest, read_deadline_ns_));
  ended_at_hung_read_.store(true);
  finished_.store(true, std::memory_order_relaxed);
  // As behind a step that failed.
  end_step_.store(committed_.load(std::memory_order_relaxed), std::memory_order_release);
}

void ExecutorImpl::RemoveThreads(size_t left) {
  WakeAll();
  for (size_t i = left; i < threads_.size(); ++i) {
    if (threads_[i].joinable()) threads_[i].join();
  }
  threads_.resize(std::min(left, threads_.size()));
  // One that has gone may have been the one that waited for a slot.
  work_.NotifyAll();
}

absl::Status ExecutorImpl::SetWorkers(int workers) {
  if (workers < 1 || workers > max_workers_) {
    return absl::InvalidArgumentError(
        absl::StrCat("workers: expected 1 to ", max_workers_,
                     " for a pipeline that runs (four for each processor), found ", workers));
  }
  std::lock_guard<std::mutex> lock(threads_mutex_);
  const int before = num_workers_.exchange(workers, std::memory_order_seq_cst);
  if (!started_ || stop_.load()) return absl::OkStatus();
  if (static_cast<int>(threads_.size()) > workers) {
    if (!WaitForEnd(workers)) {
      num_workers_.store(before, std::memory_order_seq_cst);
      // In the place of those that have ended meanwhile.
      absl::Status status = AddThreads();
      if (!status.ok()) return status;
      return absl::FailedPreconditionError("a worker that would be too many hangs in a read");
    }
    RemoveThreads(workers);
  }
  absl::Status status = AddThreads();
  if (!status.ok()) {
    num_workers_.store(before, std::memory_order_seq_cst);
    RemoveThreads(before);
  }
  return status;
}

// Does one thing, the most urgent first; false when there was none. `front` tells why the front did
// not go forward. Reads come before tasks: they are few, and the front must not find them undone when the tasks run out.
// The worker that ran the front last goes on with it and with the reads while the others have tasks: what it has read and drawn
// stays in its core's cache.
bool ExecutorImpl::WorkOnce(WorkerTools& tools, FrontResult* front) {
  *front = FrontResult::kStuck;
  const bool at_home = front_worker_.load(std::memory_order_relaxed) == tools.worker;
  if (WantsFront(at_home) && front_mutex_.try_lock()) {
    std::lock_guard<std::mutex> lock(front_mutex_, std::adopt_lock);
    const uint64_t begin = trace_.Now();
    *front = RunFront(tools.clock);
    front_worker_.store(tools.worker, std::memory_order_relaxed);
    if (*front == FrontResult::kForward) trace_.Add(tools.worker, WorkKind::kFront, begin);
  }
  if (!at_home && reads_.size() < kReadsForAll && RunTask(tools)) return true;
  return RunRead(tools) || RunTask(tools) || *front == FrontResult::kForward || RunSegment(tools);
}

// The front is wanted when less than a step's tasks are left: the other workers have those to go on
// with meanwhile. Who did not run it last takes it over when those, too, are nearly done.
bool ExecutorImpl::WantsFront(bool at_home) const {
  const uint64_t left =
      tasks_limit_.load(std::memory_order_relaxed) - tasks_.load(std::memory_order_relaxed);
  return left < (at_home ? blocks_per_step_ : blocks_per_step_ / 4 + 1) &&
         !finished_.load(std::memory_order_relaxed);
}

// Takes back what is done with, assembles what may be assembled, claims slots.
FrontResult ExecutorImpl::RunFront(StageClock& clock) {
  front_.set_clock(&clock);
  const uint64_t committed = committed_.load(std::memory_order_acquire);  // SYNC step-committed
  for (; recycled_ < committed; ++recycled_) {
    Step* step = steps_[recycled_ % kMaxSteps].load(std::memory_order_relaxed);
    front_.Release(step);
    idle_steps_.push_back(step);
  }
  const bool assembled = Assemble();
  const bool claimed = Claim();
  if (assembled || claimed) return FrontResult::kForward;
  return claimed_.load(std::memory_order_relaxed) < assembled_ ? FrontResult::kRingFull
                                                               : FrontResult::kStuck;
}

bool ExecutorImpl::Assemble() {
  if (end_step_.load(std::memory_order_relaxed) != kNever) return false;
  if (holds_ > 0 || assembled_ >= limit_.load(std::memory_order_acquire))
    return false;  // SYNC stream-limit
  if (assembled_ - claimed_.load(std::memory_order_relaxed) >= kStepsAhead ||
      assembled_ - recycled_ >= kMaxSteps)
    return false;
  if (partial_ == nullptr) {
    if (idle_steps_.empty()) {
      all_steps_.push_back(std::make_unique<Step>());
      idle_steps_.push_back(all_steps_.back().get());
    }
    partial_ = idle_steps_.back();
    idle_steps_.pop_back();
    partial_->info = StepInfo{};
    partial_->info.step = assembled_;
    partial_->done.store(false, std::memory_order_relaxed);
    partial_->failure = absl::OkStatus();
    partial_->ends.Reset(blocks_per_step_);
    partial_->blocks_left.store(blocks_per_step_, std::memory_order_relaxed);
    partial_->variable.Reset(plan_->tensors(), plan_->program().layouts(), plan_->batch_rows(),
                             plan_->block_rows());
  }
  const bool requests_waiting = HasRequests();
  const Pulled skipped =
      skipped_ < skip_steps_ ? front_.Skip(skip_steps_, &skipped_) : Pulled::kSome;
  switch (skipped == Pulled::kSome ? front_.Assemble(partial_) : skipped) {
    case Pulled::kSome: {
      if (front_.pass() >= pass_limit_) {
        EndPass();
        break;
      }
      absl::StatusOr<std::string> cursor = cursors_.Make(assembled_ + 1, partial_->position);
      if (!cursor.ok()) {
        end_status_ = cursor.status();
        end_step_.store(assembled_, std::memory_order_release);  // SYNC stream-end
        front_.Release(partial_);
        Commit();
        break;
      }
      partial_->info.cursor = *std::move(cursor);
      last_position_ = partial_->position;
      steps_[assembled_ % kMaxSteps].store(std::exchange(partial_, nullptr),
                                           std::memory_order_relaxed);
      ++assembled_;
      break;
    }
    case Pulled::kBlocked:
      if (!requests_waiting && HasRequests()) work_.NotifyAll();
      return false;
    case Pulled::kFailed:
      end_status_ = front_.status();
      [[fallthrough]];
    case Pulled::kEnd:
      // The pass that the limit names may be one that only the next plan makes.
      if (end_status_.ok() && front_.pass() >= pass_limit_) {
        EndPass();
        break;
      }
      end_step_.store(assembled_, std::memory_order_release);  // SYNC stream-end
      Commit();
      break;
  }
  if (HasRequests()) work_.NotifyAll();
  return true;
}

void ExecutorImpl::EndPass() {
  front_.Release(partial_);
  limit_.store(assembled_, std::memory_order_release);  // SYNC stream-limit
  Commit();
}

void ExecutorImpl::SetReadAhead(const std::map<std::string, int64_t>& bytes) {
  const std::vector<std::string>& names = plan_->stage_names();
  for (size_t stage = 0; stage < names.size(); ++stage) {
    auto found = bytes.find(names[stage]);
    if (found == bytes.end()) found = bytes.find("");
    files_.SetReadAhead(stage, found == bytes.end() ? FileTable::kDefaultReadAhead : found->second);
  }
}

bool ExecutorImpl::Claim() {
  uint64_t claimed = claimed_.load(std::memory_order_relaxed);
  const uint64_t before = claimed;
  for (; claimed < assembled_; ++claimed) {
    Step* step = steps_[claimed % kMaxSteps].load(std::memory_order_relaxed);
    if (!sink_.TryClaim(&step->slot)) break;
  }
  if (claimed == before) return false;
  claimed_.store(claimed, std::memory_order_release);
  tasks_limit_.store((claimed - first_step_) * blocks_per_step_,
                     std::memory_order_release);  // SYNC tasks-ready
  work_.NotifyAll();
  return true;
}

bool ExecutorImpl::RunTask(WorkerTools& tools) {
  uint64_t number = tasks_.load(std::memory_order_relaxed);
  do {
    if (number >= tasks_limit_.load(std::memory_order_acquire)) return false;  // SYNC tasks-ready
  } while (!tasks_.compare_exchange_weak(number, number + 1, std::memory_order_relaxed));
  Step* const step =
      steps_[(first_step_ + number / blocks_per_step_) % kMaxSteps].load(std::memory_order_relaxed);
  const Task task{step, step->ends.Take(/*from_back=*/tools.worker % 2 == 1)};
  if (tools.stepped) {
    tools.task = task;
    return true;
  }
  const uint64_t begin = trace_.Now();
  if (begin != 0) tools.clock.CopyTicks(&tools.ticks_before);
  FillBlock(tools.runner, task);
  FinishBlock(tools.runner, task);
  if (begin != 0)
    trace_.AddBlock(tools.worker, tools.clock, begin, first_step_ + number / blocks_per_step_,
                    tools.ticks_before);
  return true;
}

bool ExecutorImpl::RunSegment(WorkerTools& tools) {
  SegmentTask* task = segments_.Pop();
  if (task == nullptr) return false;
  if (tools.stepped) {
    tools.segment = task;
    return true;
  }
  const uint64_t begin = trace_.Now();
  FinishSegment(tools.segments, task);
  trace_.Add(tools.worker, WorkKind::kSegment, begin);
  return true;
}

void ExecutorImpl::FinishSegment(SegmentRunner& runner, SegmentTask* task) {
  runner.Run(task);
  work_.NotifyAll();
}

void ExecutorImpl::FillBlock(BlockRunner& runner, Task task) {
  Step& step = *task.step;
  const uint32_t first = task.block * plan_->block_rows();
  if (first < step.info.rows)
    runner.Run(plan_->program(), &step, first,
               std::min(plan_->block_rows(), step.info.rows - first));
}

void ExecutorImpl::FinishBlock(BlockRunner& runner, Task task) {
  Step& step = *task.step;
  if (step.blocks_left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;  // SYNC block-done
  runner.Complete(plan_->program(), &step);
  step.done.store(true, std::memory_order_release);  // SYNC step-done
  Commit();
}

bool ExecutorImpl::RunRead(WorkerTools& tools) {
  ReadRequest* request = reads_.Pop();
  if (request == nullptr) return false;
  if (tools.stepped) {
    tools.read = request;
  } else {
    const uint64_t begin = trace_.Now();
    FinishRead(tools, request);
    trace_.Add(tools.worker, WorkKind::kRead, begin);
  }
  return true;
}

void ExecutorImpl::FinishRead(WorkerTools& tools, ReadRequest* request) {
  const int stage = request->format->stage;
  StageClock::Scope scope(tools.clock, stage);
  const uint64_t begin = Ticks();
  const uint64_t bytes = tools.reader.Run(request);
  source_reads_[stage].bytes.fetch_add(bytes, std::memory_order_relaxed);
  source_reads_[stage].ticks.fetch_add(Ticks() - begin, std::memory_order_relaxed);
  bytes_read_.fetch_add(bytes, std::memory_order_relaxed);
  work_.NotifyAll();
}

void ExecutorImpl::BeginSteps() {
  for (int i = 0; i < max_workers_; ++i) {
    StageClock& clock = worker_gauges_.clock(i);
    stepped_.emplace_back(new WorkerTools{clock, BlockRunner(files_, clock), ChunkReader(store_),
                                          SegmentRunner(store_, files_, clock)});
    stepped_.back()->stepped = true;
    stepped_.back()->worker = static_cast<int>(stepped_.size()) - 1;
  }
}

// Work(), cut into parts.
Stepped ExecutorImpl::StepWorker(int worker) {
  WorkerTools& tools = *stepped_[worker];
  if (tools.read != nullptr) {
    FinishRead(tools, std::exchange(tools.read, nullptr));
    return Stepped::kWorked;
  }
  if (tools.segment != nullptr) {
    FinishSegment(tools.segments, std::exchange(tools.segment, nullptr));
    return Stepped::kWorked;
  }
  if (tools.task && !std::exchange(tools.task_is_filled, true)) {
    FillBlock(tools.runner, *tools.task);
    return Stepped::kHolds;
  }
  if (tools.task) {
    tools.task_is_filled = false;
    FinishBlock(tools.runner, *std::exchange(tools.task, std::nullopt));
    return Stepped::kWorked;
  }
  if (stop_.load()) return Stepped::kSleeps;
  if (std::exchange(tools.waits_for_slot, false)) slot_waiter_.store(false);
  if (tools.asleep) {
    if (!work_.IsOver(*tools.ticket)) return Stepped::kSleeps;
    tools.asleep = false;
    tools.ticket.reset();
    work_.Cancel();
  }
  FrontResult front = FrontResult::kStuck;
  if (WorkOnce(tools, &front)) {
    if (std::exchange(tools.ticket, std::nullopt)) work_.Cancel();
    const bool holds = tools.read != nullptr || tools.segment != nullptr || tools.task;
    return holds ? Stepped::kHolds : Stepped::kWorked;
  }
  if (!tools.ticket) {
    tools.ticket = work_.Prepare();
    return Stepped::kWorked;
  }
  if (front == FrontResult::kRingFull && !slot_waiter_.exchange(true)) {
    tools.ticket.reset();
    work_.Cancel();
    tools.waits_for_slot = true;
    return Stepped::kWaitsForSlot;
  }
  tools.asleep = true;
  return Stepped::kSleeps;
}

uint64_t ExecutorImpl::GiveBack() {
  for (; recycled_ < assembled_; ++recycled_)
    front_.Release(steps_[recycled_ % kMaxSteps].load(std::memory_order_relaxed));
  if (partial_ != nullptr) front_.Release(partial_);
  while (ReadRequest* request = reads_.Pop()) stepped_[0]->reader.Run(request);
  while (SegmentTask* task = segments_.Pop()) stepped_[0]->segments.Run(task);
  front_.GiveBack();
  uint64_t cells = store_.cells();
  for (const std::unique_ptr<WorkerTools>& tools : stepped_)
    cells -= tools->reader.spare_cells() + tools->segments.spare_cells();
  return cells;
}

void ExecutorImpl::Commit() {
  std::lock_guard<std::mutex> lock(commit_mutex_);
  uint64_t step_number = committed_.load(std::memory_order_relaxed);
  while (!finished_.load(std::memory_order_relaxed)) {
    if (step_number == end_step_.load(std::memory_order_acquire)) {  // SYNC stream-end
      sink_.Finish(end_status_);
      finished_.store(true, std::memory_order_relaxed);
      break;
    }
    if (step_number == limit_.load(std::memory_order_acquire)) {  // SYNC stream-limit
      if (!std::exchange(limit_told_, true) && at_limit_ != nullptr) at_limit_();
      break;
    }
    if (step_number == claimed_.load(std::memory_order_acquire)) break;
    Step* step = steps_[step_number % kMaxSteps].load(std::memory_order_relaxed);
    if (!step->done.load(std::memory_order_acquire)) break;  // SYNC step-done
    if (!step->failure.ok()) {
      sink_.Finish(step->failure);
      finished_.store(true, std::memory_order_relaxed);
      // Nothing behind it will be committed; the front need not go on.
      end_step_.store(step_number, std::memory_order_release);
      break;
    }
    // Counted before a consumer can have it: whoever holds a batch finds it in the statistics.
    published_.store(step_number + 1, std::memory_order_relaxed);
    rows_.fetch_add(step->info.rows, std::memory_order_relaxed);
    epoch_.store(step->info.epoch, std::memory_order_relaxed);
    sink_.Publish(step->slot, step->info);
    committed_.store(++step_number, std::memory_order_release);  // SYNC step-committed
  }
  worker_gauges_.Sample();
}

void ExecutorImpl::WaitForSlot() {
  const uint64_t start = Ticks();
  sink_.WaitForSlot(absl::Milliseconds(100));
  worker_gauges_.AddSlotWait(Ticks() - start);
}

ExecutorStats ExecutorImpl::Snapshot() const {
  ExecutorStats stats;
  stats.steps = published_.load(std::memory_order_relaxed);
  stats.rows = rows_.load(std::memory_order_relaxed);
  stats.epoch = epoch_.load(std::memory_order_relaxed);
  stats.bytes_read = bytes_read_.load(std::memory_order_relaxed);
  stats.skipped = damage_.count();
  stats.workers = num_workers_;
  worker_gauges_.Fill(&stats);
  for (size_t stage = 0; stage < stats.stages.size(); ++stage) {
    StageStats& row = stats.stages[stage];
    const SourceReads& reads = source_reads_[stage];
    row.read_bytes = reads.bytes.load(std::memory_order_relaxed);
    row.read_ns = worker_gauges_.scale().ToNanos(reads.ticks.load(std::memory_order_relaxed));
    row.read_ahead = files_.ReadAhead(stage);
    const KeptGauge& kept = gauges_[stage];
    row.kept = {KeptStateName(kept.state.load(std::memory_order_relaxed)),
                kept.elements.load(std::memory_order_relaxed),
                kept.bytes.load(std::memory_order_relaxed),
                kept.hits.load(std::memory_order_relaxed)};
  }
  stats.oldest_read = OldestOf(worker_gauges_.ReadsUnderWay(kSlowReadNs));
  stats.records = stats.stages[0].elements;
  if (sharing_ != nullptr) stats.shared = sharing_->Stats();
  return stats;
}

}  // namespace

absl::Status ReadDeadlineError(const ReadUnderWay& read, uint64_t deadline_ns) {
  constexpr uint64_t kNsPerMs = 1'000'000;
  return absl::DeadlineExceededError(
      absl::StrCat(read.doing, " did not return within read_deadline_ms: ", read.ns / kNsPerMs,
                   " > ", deadline_ns / kNsPerMs, " ms; a disk or network hangs (", read.path,
                   ", offset ", read.offset, ")"));
}

std::optional<ReadUnderWay> OldestOf(std::vector<ReadUnderWay> reads) {
  const auto oldest =
      std::max_element(reads.begin(), reads.end(),
                       [](const ReadUnderWay& a, const ReadUnderWay& b) { return a.ns < b.ns; });
  if (oldest == reads.end()) return std::nullopt;
  return std::move(*oldest);
}

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(std::shared_ptr<const Plan> plan,
                                                           BatchSink& sink,
                                                           const ExecutorOptions& options) {
  return SteppedExecutor::Create(std::move(plan), sink, options);
}

absl::StatusOr<std::unique_ptr<SteppedExecutor>> SteppedExecutor::Create(
    std::shared_ptr<const Plan> plan, BatchSink& sink, const ExecutorOptions& options) {
  auto executor = std::make_unique<ExecutorImpl>(
      std::static_pointer_cast<const PlanImpl>(std::move(plan)), sink, options);
  // The beginning has no counters; a steered stream may go back to it at any step.
  if (!options.start_pass && options.start.step > 0 && !options.start.position.counters().empty()) {
    absl::Status status = executor->Restore(options.start.position);
    if (!status.ok()) return status;
  }
  return executor;
}

}  // namespace penstock
