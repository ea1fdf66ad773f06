#include "server/engine/tasks/errands.h"

#include <optional>

#include "absl/status/statusor.h"
#include "base/new_thread.h"

namespace penstock {

Errands::~Errands() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void Errands::Do(absl::AnyInvocable<void()> work) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const bool all_are_busy = at_work_ + work_.size() >= threads_.size();
    if (all_are_busy && threads_.size() < kThreads && !in_place_) {
      const size_t number = threads_.size();
      absl::StatusOr<std::thread> thread =
          NewThread("errand of a pipeline", [this, number] { RunThread(number); });
      if (thread.ok()) threads_.push_back(*std::move(thread));
    }
    if (!threads_.empty()) {
      work_.push_back(std::move(work));
      changed_.notify_one();
      return;
    }
  }
  work();
}

void Errands::RunThread(size_t number) {
  const CallSpot::OfThisThread spot(calls_[number]);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return over_ || !work_.empty(); });
    if (work_.empty()) return;
    absl::AnyInvocable<void()> work = std::move(work_.front());
    work_.pop_front();
    ++at_work_;
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
    --at_work_;
  }
}

void SlowErrand::Start(Errands* errands) {
  if (errands == nullptr) return Ended(Do());
  errands_ = errands;
  errands->Begin(this);
}

void SlowErrand::Begin(Completion end) {
  errands_->Do([this, end = std::move(end)]() mutable {
    // The front may let go of this errand as soon as it has ended.
    absl::Status status = Do();
    end.End(std::move(status));
  });
}

std::vector<CallUnderWay> Errands::CallsUnderWay(const TickScale& scale, uint64_t ns_min) const {
  std::vector<CallUnderWay> calls;
  for (const CallSpot& spot : calls_) {
    std::optional<CallSeen> seen = spot.Look();
    if (!seen) continue;
    const uint64_t ns = scale.ToNanos(seen->ticks);
    if (ns >= ns_min)
      calls.push_back(
          {seen->kind, std::move(seen->doing), std::move(seen->path), seen->offset, ns});
  }
  return calls;
}

}  // namespace penstock
