#include "base/pending_call.h"

#include <thread>

namespace penstock {
namespace {

// Whoever reads a file knows nothing of who watches: spots are found by the thread.
thread_local CallSpot* spot_of_this_thread = nullptr;

}  // namespace

CallSpot::OfThisThread::OfThisThread(CallSpot& spot) : outer_(spot_of_this_thread) {
  spot_of_this_thread = &spot;
}

CallSpot::OfThisThread::~OfThisThread() { spot_of_this_thread = outer_; }

void CallSpot::Hide() {
  uint32_t shown = kShown;
  while (!state_.compare_exchange_weak(shown, kNone, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {  // SYNC call-shown
    shown = kShown;
    std::this_thread::yield();
  }
}

std::optional<CallSeen> CallSpot::Look(uint64_t ticks_min) const {
  uint32_t shown = kShown;
  while (!state_.compare_exchange_weak(shown, kLookedAt, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {  // SYNC call-shown
    if (shown == kNone) return std::nullopt;
    shown = kShown;
    std::this_thread::yield();
  }
  // Clocks of two processors may differ by a little.
  const uint64_t now = Ticks();
  const uint64_t ticks = now > call_->since_ ? now - call_->since_ : 0;
  std::optional<CallSeen> seen;
  if (ticks >= ticks_min) seen = {call_->kind_, call_->doing_, call_->path_, call_->offset_, ticks};
  state_.store(kShown, std::memory_order_release);  // SYNC call-shown
  return seen;
}

PendingCall::PendingCall(const char* doing, const std::string& path, uint64_t offset, CallKind kind)
    : doing_(doing),
      path_(path),
      offset_(offset),
      kind_(kind),
      since_(Ticks()),
      spot_(spot_of_this_thread) {
  if (spot_ == nullptr) return;
  if (spot_->state_.load(std::memory_order_relaxed) != CallSpot::kNone) {
    spot_->Hide();
    outer_ = spot_->call_;
  }
  spot_->call_ = this;
  spot_->state_.store(CallSpot::kShown, std::memory_order_release);  // SYNC call-shown
}

PendingCall::~PendingCall() {
  if (spot_ == nullptr) return;
  spot_->Hide();
  if (outer_ == nullptr) return;
  outer_->since_ = Ticks();
  spot_->call_ = outer_;
  spot_->state_.store(CallSpot::kShown, std::memory_order_release);  // SYNC call-shown
}

}  // namespace penstock
