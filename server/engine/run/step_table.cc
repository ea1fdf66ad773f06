#include "server/engine/run/step_table.h"

#include <algorithm>
#include <utility>

namespace penstock {

StepTable::StepTable(uint64_t first_step, uint64_t grains_per_step, std::function<void()> at_limit,
                     BatchSink& sink, WorkerGauges& gauges)
    : first_step_(first_step),
      grains_per_step_(grains_per_step),
      at_limit_(std::move(at_limit)),
      sink_(sink),
      gauges_(gauges),
      claimed_(first_step),
      committed_(first_step),
      published_(first_step) {}

bool StepTable::Claim(uint64_t assembled) {
  uint64_t claimed = claimed_.load(std::memory_order_relaxed);
  const uint64_t before = claimed;
  for (; claimed < assembled; ++claimed) {
    if (!sink_.TryClaim(&At(claimed)->slot)) break;
  }
  if (claimed == before) return false;
  claimed_.store(claimed, std::memory_order_release);
  grains_limit_.store((claimed - first_step_) * grains_per_step_,
                      std::memory_order_release);  // SYNC tasks-ready
  return true;
}

std::optional<BlockTask> StepTable::Take(uint32_t grains_max, bool from_back) {
  uint64_t grain = grains_.load(std::memory_order_relaxed);
  uint64_t count;
  do {
    // Whole steps are dealt out, so that what is left of one is there.
    if (grain >= grains_limit_.load(std::memory_order_acquire))  // SYNC tasks-ready
      return std::nullopt;
    count = std::min<uint64_t>(grains_max, grains_per_step_ - grain % grains_per_step_);
  } while (!grains_.compare_exchange_weak(grain, grain + count, std::memory_order_relaxed));
  const uint64_t number = first_step_ + grain / grains_per_step_;
  Step* const step = At(number);
  const auto grains = static_cast<uint32_t>(count);
  return BlockTask{step, step->ends.Take(grains, from_back), grains, number};
}

std::optional<BlockTask> StepTable::TakeStep(uint64_t left) {
  uint64_t grain = grains_.load(std::memory_order_relaxed);
  do {
    const uint64_t limit = grains_limit_.load(std::memory_order_acquire);  // SYNC tasks-ready
    if (grain % grains_per_step_ != 0 || grain + (1 + left) * grains_per_step_ > limit)
      return std::nullopt;
  } while (
      !grains_.compare_exchange_weak(grain, grain + grains_per_step_, std::memory_order_relaxed));
  const uint64_t number = first_step_ + grain / grains_per_step_;
  return BlockTask{At(number), 0, static_cast<uint32_t>(grains_per_step_), number};
}

void StepTable::Commit() {
  // SYNC commit-asked: whoever is at it looks again for what is done behind its look.
  if (commits_asked_.fetch_add(1, std::memory_order_acq_rel) != 0) return;
  uint32_t asked;
  do {
    asked = commits_asked_.load(std::memory_order_acquire);
    CommitWhatIsDone();
  } while (!commits_asked_.compare_exchange_strong(asked, 0, std::memory_order_acq_rel));
}

void StepTable::CommitWhatIsDone() {
  std::lock_guard<std::mutex> lock(mutex_);
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
    Step* step = At(step_number);
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
  gauges_.Sample();
}

bool StepTable::Fail(const absl::Status& status) {
  std::lock_guard<std::mutex> lock(mutex_);
  // At its limit it has published all that is its own: the sink is another one's then.
  if (finished_.load(std::memory_order_relaxed) || limit_told_) return false;
  sink_.Finish(status);
  finished_.store(true, std::memory_order_relaxed);
  // As behind a step that failed.
  end_step_.store(committed_.load(std::memory_order_relaxed), std::memory_order_release);
  return true;
}

void StepTable::Close() {
  std::lock_guard<std::mutex> lock(mutex_);
  finished_.store(true, std::memory_order_relaxed);
}

void StepTable::Fill(ExecutorStats* stats) const {
  stats->steps = published_.load(std::memory_order_relaxed);
  stats->rows = rows_.load(std::memory_order_relaxed);
  stats->epoch = epoch_.load(std::memory_order_relaxed);
}

}  // namespace penstock
