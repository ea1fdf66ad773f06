#include "server/engine/tasks/away_tasks.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace penstock {
AwayTasks::AwayTasks(Event& work, size_t stages) : work_(work), ns_(stages) {}

AwayTasks::~AwayTasks() { WaitForAll(); }

Completion AwayTasks::Leave(AwayTask* task, AwayCall call) {
  auto mark = std::make_unique<Mark>();
  Mark* const left = mark.get();
  left->tasks = this;
  left->task = task;
  left->call = std::move(call);
  left->since_ns = MonotonicNanos();
  std::lock_guard<std::mutex> lock(mutex_);
  away_.push_back(std::move(mark));
  left->place = std::prev(away_.end());
  size_.store(away_.size(), std::memory_order_release);
  return Completion(left);
}

void AwayTasks::End(Mark* mark, absl::Status status) {
  std::function<void()> cancel;  // what it owns goes without the lock
  {
    std::lock_guard<std::mutex> lock(mutex_);
    mark->ended = true;
    cancel = std::move(mark->cancel);
    if (mark->call.stage >= 0) ns_[mark->call.stage] += MonotonicNanos() - mark->since_ns;
  }
  mark->task->Ended(std::move(status));
  work_.NotifyAll();
  // Last: who waits for all may let everything go then.
  std::lock_guard<std::mutex> lock(mutex_);
  away_.erase(mark->place);
  size_.store(away_.size(), std::memory_order_release);
  ended_.notify_all();
}

void AwayTasks::OnCancel(Mark* mark, std::function<void()> cancel) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    mark->can_cancel = true;
    if (cancelled_ns_ == 0) {
      mark->cancel = std::move(cancel);
      return;
    }
  }
  cancel();
}

void AwayTasks::Cancel() {
  std::vector<std::function<void()>> cancels;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (cancelled_ns_ == 0) cancelled_ns_ = MonotonicNanos();
    for (const std::unique_ptr<Mark>& mark : away_) {
      if (mark->cancel != nullptr) cancels.push_back(std::exchange(mark->cancel, nullptr));
    }
  }
  for (const std::function<void()>& cancel : cancels) cancel();
}

bool AwayTasks::WaitForAll(uint64_t hung_read_ns) {
  constexpr auto kLook = std::chrono::milliseconds(20);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!away_.empty()) {
    const uint64_t now = MonotonicNanos();
    const bool all_hang =
        std::all_of(away_.begin(), away_.end(), [&](const std::unique_ptr<Mark>& mark) {
          const uint64_t since =
              mark->can_cancel ? std::max(mark->since_ns, cancelled_ns_) : mark->since_ns;
          return !mark->ended && now - since >= HungAfterNs(mark->call.kind, hung_read_ns);
        });
    if (all_hang) return false;
    ended_.wait_for(lock, kLook);
  }
  return true;
}

void AwayTasks::WaitForAll() {
  std::unique_lock<std::mutex> lock(mutex_);
  ended_.wait(lock, [this] { return away_.empty(); });
}

std::vector<CallUnderWay> AwayTasks::CallsUnderWay(uint64_t ns_min) const {
  std::vector<CallUnderWay> calls;
  const uint64_t now = MonotonicNanos();
  std::lock_guard<std::mutex> lock(mutex_);
  for (const std::unique_ptr<Mark>& mark : away_) {
    const uint64_t ns = now > mark->since_ns ? now - mark->since_ns : 0;
    if (mark->ended || ns < ns_min || *mark->call.doing == '\0') continue;
    const AwayCall& call = mark->call;
    calls.push_back({call.kind, call.doing, call.path, call.offset, ns});
  }
  return calls;
}

uint64_t AwayTasks::NanosOf(int stage) const {
  const uint64_t now = MonotonicNanos();
  std::lock_guard<std::mutex> lock(mutex_);
  uint64_t sum = ns_[stage];
  for (const std::unique_ptr<Mark>& mark : away_) {
    if (mark->call.stage == stage && !mark->ended && now > mark->since_ns)
      sum += now - mark->since_ns;
  }
  return sum;
}

}  // namespace penstock
