#include "server/engine/run/worker_threads.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/new_thread.h"
#include "base/pending_call.h"
#include "base/tick_clock.h"
#include "server/engine/tasks/calls_under_way.h"

namespace penstock {
namespace {

// Whoever stops waits so long for what a worker computes: it looks for a stop every few
// milliseconds, but for what libraries do for it.
constexpr uint64_t kComputingNs = 700'000'000;

}  // namespace

WorkerThreads::WorkerThreads(int workers, int max_workers, std::function<void(int)> work,
                             std::atomic<bool>& stop, Event& event, BatchSink& sink,
                             const WorkerGauges& gauges, uint64_t read_deadline_ns)
    : max_number_(max_workers),
      work_(std::move(work)),
      hung_read_ns_(read_deadline_ns == 0 ? kHungCallNs : std::min(kHungCallNs, read_deadline_ns)),
      stop_(stop),
      event_(event),
      sink_(sink),
      gauges_(gauges),
      number_(workers) {}

absl::Status WorkerThreads::Start() {
  std::lock_guard<std::mutex> lock(mutex_);
  started_ = true;
  absl::Status status = Add();
  if (!status.ok()) {
    stop_.store(true);
    Remove();
  }
  return status;
}

void WorkerThreads::Stop() {
  stop_.store(true);
  std::lock_guard<std::mutex> lock(mutex_);
  Remove();
}

bool WorkerThreads::TryStop() {
  stop_.store(true);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!WaitForEnd()) return false;
  Remove();
  return true;
}

bool WorkerThreads::HaveEnded() const {
  std::lock_guard<std::mutex> lock(running_mutex_);
  return std::find(running_.begin(), running_.end(), true) == running_.end();
}

absl::Status WorkerThreads::SetNumber(int workers) {
  if (workers < 1 || workers > max_number_) {
    return absl::InvalidArgumentError(
        absl::StrCat("workers: expected 1 to ", max_number_,
                     " for a pipeline that runs (four for each processor), found ", workers));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const int before = number_.load(std::memory_order_seq_cst);
  Announce(workers);
  if (!started_ || stop_.load()) return absl::OkStatus();
  absl::Status status = Add();
  if (!status.ok()) Announce(before);
  // Those that are too many and sleep end now, the others when they look.
  WakeAll();
  Reap();
  return status;
}

void WorkerThreads::Announce(int number) {
  std::lock_guard<std::mutex> lock(running_mutex_);
  number_.store(number, std::memory_order_seq_cst);
}

void WorkerThreads::Run(int worker) {
  while (true) {
    work_(worker);
    // It may have been the one that waited for a slot.
    event_.NotifyAll();
    // Its number may have been raised since it looked: whoever does that sees a worker that runs,
    // and starts no other one in its place.
    std::lock_guard<std::mutex> lock(running_mutex_);
    if (!IsOver(worker)) continue;
    running_[worker] = false;
    running_changed_.notify_all();
    return;
  }
}

absl::Status WorkerThreads::Add() {
  for (int i = 0; i < number_.load(); ++i) {
    const bool is_new = i == std::ssize(threads_);
    if (!is_new && IsRunning(i)) continue;
    if (!is_new && threads_[i].joinable()) threads_[i].join();
    SetRunning(i, true);
    absl::StatusOr<std::thread> thread =
        NewThread(absl::StrCat("worker ", i + 1, " of ", number_.load()), [this, i] { Run(i); });
    if (!thread.ok()) {
      SetRunning(i, false);
      return thread.status();
    }
    if (is_new) threads_.emplace_back();
    threads_[i] = *std::move(thread);
  }
  return absl::OkStatus();
}

bool WorkerThreads::IsRunning(int worker) const {
  std::lock_guard<std::mutex> lock(running_mutex_);
  return running_[worker];
}

void WorkerThreads::SetRunning(int worker, bool running) {
  std::lock_guard<std::mutex> lock(running_mutex_);
  running_.resize(std::max<size_t>(running_.size(), worker + 1));
  running_[worker] = running;
  running_changed_.notify_all();
}

bool WorkerThreads::Hangs(int worker) const {
  const std::optional<CallSeen> call = gauges_.pulse(worker).call.Look();
  if (!call) return false;
  return gauges_.scale().ToNanos(call->ticks) >= HungAfterNs(call->kind, hung_read_ns_);
}

bool WorkerThreads::WaitForEnd() {
  constexpr auto kLook = std::chrono::milliseconds(20);
  const uint64_t begin_ns = MonotonicNanos();
  WakeAll();
  std::unique_lock<std::mutex> lock(running_mutex_);
  while (true) {
    bool all_hang = true;
    bool any = false;
    for (int i = 0; i < std::ssize(running_); ++i) {
      if (!running_[i]) continue;
      any = true;
      all_hang = all_hang && Hangs(i);
    }
    if (!any) return true;
    if (all_hang || MonotonicNanos() - begin_ns >= kComputingNs) return false;
    running_changed_.wait_for(lock, kLook);
  }
}

void WorkerThreads::Remove() {
  WakeAll();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  threads_.clear();
}

void WorkerThreads::Reap() {
  while (!threads_.empty() && !IsRunning(static_cast<int>(threads_.size()) - 1)) {
    if (threads_.back().joinable()) threads_.back().join();
    threads_.pop_back();
  }
}

void WorkerThreads::WakeAll() {
  event_.NotifyAll();
  sink_.Interrupt();
}

}  // namespace penstock
