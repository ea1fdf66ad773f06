#include "server/engine/run/lent_steps.h"

#include <algorithm>
#include <utility>

namespace penstock {

bool LentSteps::LendOne() {
  if (lender_ == nullptr || !lender_->HasRoom()) return false;
  const std::shared_ptr<StepLender::Place> place = lender_->Reserve();
  if (place == nullptr) return false;
  const std::optional<BlockTask> task = steps_.TakeStep(/*left=*/1);
  if (!task) {
    lender_->GiveUp(*place);
    return false;
  }
  LentStep* lent = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (idle_.empty()) {
      all_.push_back(std::make_unique<LentStep>(back_));
      idle_.push_back(all_.back().get());
    }
    lent = idle_.back();
    idle_.pop_back();
  }
  lent->task = *task;
  Step& step = *task->step;
  const std::string cursor = step.info.cursor;
  // Who has it is told by the lender.
  Completion done = away_.Leave(lent, {CallKind::kWork, "", "", task->number, -1});
  lender_->Lend(*place, &step.info, step.slot, std::move(done));
  // From here on the step is others'.
  lender_->Passed(task->number + 1, cursor);
  return true;
}

Step* LentSteps::TakeMade(bool* is_back) {
  LentStep* const lent = back_.Pop();
  *is_back = lent != nullptr;
  if (lent == nullptr) return nullptr;
  const BlockTask task = lent->task;
  const bool is_made = lent->status.ok();
  std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(lent);
  if (is_made) return task.step;
  returned_.push_back({task.step, task.number, task.grains});
  returned_grains_.fetch_add(task.grains, std::memory_order_relaxed);
  return nullptr;
}

std::optional<BlockTask> LentSteps::TakeReturned(uint32_t grains_max, bool from_back) {
  if (returned_grains_.load(std::memory_order_relaxed) == 0) return std::nullopt;
  std::lock_guard<std::mutex> lock(mutex_);
  if (returned_.empty()) return std::nullopt;
  Returned& first = returned_.front();
  const auto grains = static_cast<uint32_t>(std::min<uint64_t>(grains_max, first.grains_left));
  const BlockTask task{first.step, first.step->ends.Take(grains, from_back), grains, first.number};
  first.grains_left -= grains;
  returned_grains_.fetch_sub(grains, std::memory_order_relaxed);
  if (first.grains_left == 0) returned_.pop_front();
  return task;
}

}  // namespace penstock
