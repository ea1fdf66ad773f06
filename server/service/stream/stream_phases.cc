// How a stream goes from phase to phase: where the present one ends, and its successor's executor
// in its place.

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "server/service/stream/stream.h"

namespace penstock {
namespace {

// Between two tries to write down which epoch is waited for, or where it begins.
constexpr std::chrono::milliseconds kEpochRetry{250};

}  // namespace

void Stream::LimitIt() {
  if (phases_.size() < 2 || executor_ == nullptr) return;
  const Phase& next = phases_[1];
  if (next.any_pass_from) {
    executor_->SetLimit(*next.any_pass_from);
  } else if (next.first_step == kUnknownStep) {
    executor_->SetPassLimit(*next.pass);
  } else {
    executor_->SetLimit(next.first_step);
  }
}

void Stream::Advance() {
  while (true) {
    {
      std::unique_lock<std::mutex> lock(limit_mutex_);
      limit_changed_.wait(lock, [this] { return at_limit_ || ends_; });
      if (ends_) return;
      at_limit_ = false;
    }
    if (FindEpoch()) continue;
    if (!TellEpoch()) return;
    ChangePhase();
  }
}

bool Stream::Tell(const std::function<bool()>& tell) {
  while (!tell()) {
    std::unique_lock<std::mutex> lock(limit_mutex_);
    limit_changed_.wait_for(lock, kEpochRetry, [this] { return ends_; });
    if (ends_) return false;
  }
  return true;
}

bool Stream::FindEpoch() {
  uint64_t from = 0, epoch = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (executor_ == nullptr || phases_.size() < 2) return true;
    if (!phases_[1].any_pass_from) return false;
    from = *phases_[1].any_pass_from;
    // Of the step in front of it.
    epoch = executor_->pass() + 1;
  }
  {
    // An executor that is being stopped has no pass.
    std::lock_guard<std::mutex> lock(limit_mutex_);
    if (ends_) return true;
  }
  if (epoch_known_ != nullptr && !Tell([&] { return epoch_known_(epoch); })) return true;
  std::lock_guard<std::mutex> change_lock(change_mutex_);
  std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_ || executor_ == nullptr || phases_.size() < 2 || phases_[1].any_pass_from != from)
    return true;
  phases_[1].any_pass_from.reset();
  phases_[1].pass = epoch;
  executor_->SetPassLimit(epoch);
  executor_->SetLimit(kUnknownStep);
  return true;
}

bool Stream::TellEpoch() {
  uint64_t step = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (executor_ == nullptr || phases_.size() < 2 || phases_[1].first_step != kUnknownStep)
      return true;
    step = executor_->limit();
    phases_[1].BeginAt(step, phases_[0]);
  }
  // Without a lock: whoever is told takes some of its own.
  return epoch_begins_ == nullptr || Tell([&] { return epoch_begins_(step); });
}

void Stream::ChangePhase() {
  // Nobody gives the old executor what the new one would not hear of.
  std::lock_guard<std::mutex> change_lock(change_mutex_);
  ResumePoint start;
  Phase next;
  Executor* old = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_ || executor_ == nullptr || phases_.size() < 2) return;
    next = phases_[1];
    old = executor_.get();
  }
  start.step = next.first_step;
  start.position = old->AtLimit();
  // Stop() waits for change_mutex_, so that it is still there.
  const bool ended = End(*old);
  absl::StatusOr<std::unique_ptr<Executor>> executor =
      MakeExecutor(next, std::move(start), /*begins=*/true);
  if (!executor.ok()) {
    producers_sink().Finish(executor.status());
    return;
  }
  std::unique_ptr<Executor> gone;
  // Behind the lock.
  const absl::Cleanup leave = [&] {
    if (!ended) Leave(std::move(gone));
  };
  std::lock_guard<std::mutex> lock(mutex_);
  before_ = StatsNow();
  uint64_t again = 0;
  for (SkippedRecord& skipped : SkippedNow(&again)) {
    if (skipped_before_.size() < DamageLog::kMaxListed)
      skipped_before_.push_back(std::move(skipped));
  }
  gone = std::exchange(executor_, *std::move(executor));
  phases_.erase(phases_.begin());
  for (int i = 0; i < holds_; ++i) executor_->Hold();
  // Before it begins: what it makes behind its limit could not be taken back.
  LimitIt();
  const absl::Status started = executor_->Start();
  if (!started.ok()) producers_sink().Finish(started);
}

std::optional<uint64_t> Stream::pass() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (executor_ == nullptr) return std::nullopt;
  uint64_t pass = executor_->pass();
  for (size_t i = 1; i < phases_.size(); ++i) {
    if (phases_[i].seek || phases_[i].skip_steps > 0) return std::nullopt;
    pass = phases_[i].pass.value_or(pass);
  }
  return pass;
}

void Stream::AddPhase(Phase phase) {
  std::lock_guard<std::mutex> change_lock(change_mutex_);
  std::lock_guard<std::mutex> lock(mutex_);
  phases_.push_back(std::move(phase));
  if (phases_.size() == 2) LimitIt();
}

bool Stream::HasFoundPass() const {
  std::lock_guard<std::mutex> lock(mutex_);
  // Behind another phase it is not looked for yet.
  return executor_ != nullptr && phases_.size() == 2 && phases_[1].pass &&
         executor_->limit() != kUnknownStep;
}

void Stream::DropLastPhase() {
  std::lock_guard<std::mutex> change_lock(change_mutex_);
  std::lock_guard<std::mutex> lock(mutex_);
  phases_.pop_back();
  if (phases_.size() != 1 || executor_ == nullptr) return;
  executor_->SetPassLimit(kUnknownStep);
  executor_->SetLimit(kUnknownStep);
  // It may just have come to that one's.
  std::lock_guard<std::mutex> limit_lock(limit_mutex_);
  at_limit_ = false;
}

}  // namespace penstock
