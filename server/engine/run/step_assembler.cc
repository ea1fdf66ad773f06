#include "server/engine/run/step_assembler.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "server/engine/compute/block_runner.h"
#include "server/engine/compute/far_records.h"
#include "server/engine/run/executor.h"

namespace penstock {
namespace {

constexpr uint64_t kStepsAhead = 2;
// Enough for some 640 steps a second where a first byte takes 50 ms.
constexpr uint64_t kFarStepsAhead = 32;
constexpr uint64_t kFarBytesAhead = uint64_t{64} << 20;

}  // namespace

StepAssembler::StepAssembler(const Means& means, const ExecutorOptions& options)
    : plan_(means.plan),
      skip_steps_(options.skip_steps),
      cursors_(options.fingerprint),
      reads_(means.reads),
      sections_(means.sections),
      errands_(means.errands),
      stop_(means.stop),
      steps_(means.steps),
      work_(means.work),
      files_(means.files),
      has_far_files_(FarRecords::AnyIn(means.files)),
      assembled_(options.start.step),
      front_(means.plan, means.files, means.store, means.reads, means.sections, means.damage,
             means.stop, means.gauges, &waiting_, &means.errands, means.packs),
      recycled_(options.start.step),
      last_position_(options.start.position),
      steps_ahead_(kStepsAhead) {
  if (options.start_pass) front_.BeginPass(*options.start_pass);
}

FrontResult StepAssembler::Run(StageClock& clock) {
  front_.set_clock(&clock);
  const uint64_t committed = steps_.committed();
  for (; recycled_ < committed; ++recycled_) {
    Step* step = steps_.At(recycled_);
    front_.Release(step);
    idle_steps_.push_back(step);
  }
  while (!announced_.empty() && announced_.front().step < committed) announced_.pop_front();
  const bool assembled = Assemble();
  const bool claimed = Claim();
  if (assembled || claimed) return FrontResult::kForward;
  return steps_.claimed() < assembled_ ? FrontResult::kRingFull : FrontResult::kStuck;
}

bool StepAssembler::Claim() {
  std::lock_guard<std::mutex> lock(claim_mutex_);
  if (!steps_.Claim(assembled_.load(std::memory_order_acquire))) return false;
  work_.NotifyAll();
  return true;
}

void StepAssembler::BeginStep() {
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
  partial_->ends.Reset(steps_.grains_per_step());
  partial_->grains_left.store(steps_.grains_per_step(), std::memory_order_relaxed);
  partial_->variable.Reset(plan_.tensors(), plan_.program().layouts(),
                           static_cast<uint32_t>(steps_.grains_per_step()));
}

bool StepAssembler::Assemble() {
  if (steps_.KnowsEnd()) return false;
  if (holds_ > 0 || assembled_ >= steps_.limit()) return false;
  if (assembled_ - steps_.claimed() >= steps_ahead_ ||
      assembled_ - recycled_ >= StepTable::kMaxSteps)
    return false;
  if (partial_ == nullptr) BeginStep();
  const bool requests_waiting = HasRequests();
  const Pulled skipped =
      skipped_ < skip_steps_ ? front_.Skip(skip_steps_, &skipped_) : Pulled::kSome;
  const Pulled pulled = skipped == Pulled::kSome ? front_.Assemble(partial_) : skipped;
  if (front_.pass() >= pass_limit_) {
    // Whatever became of it, and at the stream's end too: the pass that the limit names is the next
    // plan's, whose files may be there when this one's are gone.
    EndPass();
  } else if (pulled == Pulled::kBlocked) {
    if (!requests_waiting && HasRequests()) work_.NotifyAll();
    return false;
  } else if (pulled == Pulled::kSome) {
    FinishStep();
  } else {
    steps_.SetEnd(assembled_, pulled == Pulled::kFailed ? front_.status() : absl::OkStatus());
    steps_.Commit();
  }
  if (HasRequests()) work_.NotifyAll();
  return true;
}

void StepAssembler::TakeOwnRows() {
  BlockRunner::ShowRows(plan_.program(), partial_);
  if (partial_->shown.count == partial_->rows || plan_.program().computes_all_rows()) return;
  front_.KeepRows(partial_->shown, partial_);
  partial_->first_row = partial_->shown.first;
  partial_->rows = partial_->shown.count;
  partial_->shown.first = 0;
  partial_->variable.Show(partial_->shown);
}

void StepAssembler::Announce() {
  Announced announced;
  announced.step = assembled_;
  const uint64_t bytes = FarRecords::Announce(partial_->records, files_, &announced.open);
  // What lies in cells has been read ahead by its file.
  steps_ahead_ =
      bytes == 0 ? kStepsAhead : std::clamp(kFarBytesAhead / bytes, kStepsAhead, kFarStepsAhead);
  if (bytes > 0) announced_.push_back(std::move(announced));
}

void StepAssembler::FinishStep() {
  absl::StatusOr<std::string> cursor = cursors_.Make(assembled_ + 1, partial_->position);
  if (!cursor.ok()) {
    steps_.SetEnd(assembled_, cursor.status());
    front_.Release(partial_);
    steps_.Commit();
    return;
  }
  partial_->info.cursor = *std::move(cursor);
  TakeOwnRows();
  if (has_far_files_) Announce();
  last_position_ = partial_->position;
  steps_.Put(assembled_, std::exchange(partial_, nullptr));
  ++assembled_;
}

void StepAssembler::EndPass() {
  front_.Release(partial_);
  steps_.SetLimit(assembled_);
  steps_.Commit();
}

uint64_t StepAssembler::Hold() {
  const std::unique_lock<std::mutex> lock = Lock();
  if (!lock.owns_lock()) return steps_.published();
  ++holds_;
  return assembled_;
}

bool StepAssembler::Release() {
  const std::unique_lock<std::mutex> lock = Lock();
  if (lock.owns_lock()) --holds_;
  return lock.owns_lock();
}

void StepAssembler::SetPassLimit(uint64_t pass) {
  const std::unique_lock<std::mutex> lock = Lock();
  if (lock.owns_lock()) pass_limit_ = pass;
}

uint64_t StepAssembler::pass() const {
  const std::unique_lock<std::mutex> lock = Lock();
  return lock.owns_lock() ? front_.pass() : 0;
}

Position StepAssembler::AtLimit() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return last_position_;
}

std::unique_lock<std::mutex> StepAssembler::Lock() const {
  constexpr auto kLook = std::chrono::microseconds(100);
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) return lock;
  waiting_.fetch_add(1);
  while (!lock.owns_lock() && !stop_.load() && !steps_.finished()) {
    std::this_thread::sleep_for(kLook);
    lock.try_lock();
  }
  waiting_.fetch_sub(1);
  return lock;
}

void StepAssembler::GiveBackSteps() {
  for (; recycled_ < assembled_; ++recycled_) front_.Release(steps_.At(recycled_));
  if (partial_ != nullptr) front_.Release(partial_);
}

}  // namespace penstock
