#include "server/engine/run/stepped_worker.h"

#include <utility>

namespace penstock {

Stepped SteppedWorker::Step(const std::atomic<bool>& stop) {
  if (worker_.FillHeld()) return Stepped::kHolds;
  if (worker_.FinishHeld()) return Stepped::kWorked;
  if (stop.load()) return Stepped::kSleeps;
  if (std::exchange(waits_for_slot_, false)) site_.slot_waiter.store(false);
  if (asleep_) {
    if (!site_.work.IsOver(*ticket_)) return Stepped::kSleeps;
    asleep_ = false;
    ticket_.reset();
    site_.work.Cancel();
  }
  FrontResult front = FrontResult::kStuck;
  if (worker_.Once(&front)) {
    if (std::exchange(ticket_, std::nullopt)) site_.work.Cancel();
    return worker_.has_held() ? Stepped::kHolds : Stepped::kWorked;
  }
  if (!ticket_) {
    ticket_ = site_.work.Prepare();
    return Stepped::kWorked;
  }
  if (front == FrontResult::kRingFull && !site_.slot_waiter.exchange(true)) {
    ticket_.reset();
    site_.work.Cancel();
    waits_for_slot_ = true;
    return Stepped::kWaitsForSlot;
  }
  asleep_ = true;
  return Stepped::kSleeps;
}

}  // namespace penstock
