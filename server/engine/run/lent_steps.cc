#include "server/engine/run/lent_steps.h"

#include <algorithm>
#include <utility>

#include "base/tick_clock.h"

namespace penstock {

bool LentSteps::LendOne() {
  if (lender_ == nullptr || !lender_->HasRoom()) return false;
  const std::unique_lock<std::mutex> lending(lending_, std::try_to_lock);
  if (!lending.owns_lock()) return false;
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
    lent->task = *task;
    lent->is_away = true;
  }
  Step& step = *task->step;
  const std::string cursor = step.info.cursor;
  // Who has it is told by the lender.
  Completion done = away_.Leave(lent, {CallKind::kWork, "", "", task->number, -1});
  lender_->Lend(*place, &step.info, step.slot, std::move(done));
  // From here on the step is others'.
  lender_->Passed(task->number + 1, cursor, own_ns_.load(std::memory_order_relaxed));
  return true;
}

bool LentSteps::TakeBackHeld(bool ring_is_full) {
  if (lender_ == nullptr || steps_.finished()) return false;
  const uint64_t head = steps_.committed(), claimed = steps_.claimed();
  const bool is_end = steps_.KnowsEnd() || claimed >= steps_.limit();
  if (claimed <= head || (!is_end && !ring_is_full)) return false;
  const uint64_t in_flight = claimed - head;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    // How many slots can be in flight, the rest being with consumers, only a look at it tells.
    constexpr uint64_t kLooksToForget = 64;
    if (++looks_ % kLooksToForget == 0 && most_in_flight_ > 0) --most_in_flight_;
    most_in_flight_ = std::max(most_in_flight_, in_flight);
    if (!is_end && 4 * in_flight < 3 * most_in_flight_) return false;
    uint64_t lent = 0, done = 0;
    bool is_head = false;
    for (const std::unique_ptr<LentStep>& one : all_) {
      lent += one->is_away;
      is_head = is_head || (one->is_away && one->task.number == head);
    }
    if (!is_head) return false;
    for (uint64_t step = head; step < claimed; ++step)
      done += steps_.At(step)->done.load(std::memory_order_relaxed);
    if ((!is_end && 3 * done < in_flight) || lent + done < in_flight) return false;
  }
  lender_->TakeBack(head);
  return !back_.empty();
}

void LentSteps::Passed(const StepInfo& info) {
  const uint64_t now_ns = MonotonicNanos();
  const uint64_t before_ns = done_ns_.exchange(now_ns, std::memory_order_relaxed);
  uint64_t own_ns = own_ns_.load(std::memory_order_relaxed);
  if (before_ns != 0 && now_ns > before_ns) {
    const uint64_t took_ns = now_ns - before_ns;
    own_ns = own_ns == 0 ? took_ns : (7 * own_ns + took_ns) / 8;
    own_ns_.store(own_ns, std::memory_order_relaxed);
  }
  lender_->Passed(info.step + 1, info.cursor, own_ns);
}

Step* LentSteps::TakeMade(bool* is_back) {
  LentStep* const lent = back_.Pop();
  *is_back = lent != nullptr;
  if (lent == nullptr) return nullptr;
  const BlockTask task = lent->task;
  const bool is_made = lent->status.ok();
  std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(lent);
  lent->is_away = false;
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
