#include "server/service/stream/within_deadline.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/memory_account.h"
#include "base/new_thread.h"
#include "base/pending_call.h"
#include "base/stop_flag.h"
#include "base/tick_clock.h"
#include "server/engine/tasks/calls_under_way.h"

namespace penstock {
namespace {

struct Call {
  CallSpot spot;
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<bool> stop{false};
  bool done = false;     // under mutex
  absl::Status failure;  // under mutex: what the work did not say itself
};

}  // namespace

absl::Status CallWithin(const ReadDeadline& deadline, const std::string& what,
                        std::function<void()> work) {
  constexpr auto kLook = std::chrono::milliseconds(20);
  constexpr auto kStopping = std::chrono::milliseconds(700);
  constexpr uint64_t kPauseNs = 2'000'000'000;
  const TickScale scale;
  const auto call = std::make_shared<Call>();
  absl::StatusOr<std::thread> thread =
      NewThread("reading", [call, work = std::move(work)]() mutable {
        {
          const CallSpot::OfThisThread spot(call->spot);
          const StopFlag::Scope stops(&call->stop);
          absl::Status failure;
          try {
            work();
          } catch (const MemoryLimitError& error) {
            failure = MemoryStatus(error);
          } catch (const Stopped&) {
            failure = absl::CancelledError("not wanted any more");
          }
          // What it holds goes with it, a result that nobody waits for too.
          work = nullptr;
          std::lock_guard<std::mutex> failure_lock(call->mutex);
          call->failure = std::move(failure);
        }
        std::lock_guard<std::mutex> lock(call->mutex);
        call->done = true;
        call->changed.notify_all();
      });
  if (!thread.ok()) return thread.status();
  uint64_t looked_at_ns = MonotonicNanos();
  std::unique_lock<std::mutex> lock(call->mutex);
  const auto leave = [&] {
    lock.unlock();
    deadline.leftovers->Take(what, *std::move(thread), [call] {
      std::lock_guard<std::mutex> done_lock(call->mutex);
      return call->done;
    });
  };
  while (!call->changed.wait_for(lock, kLook, [&] { return call->done; })) {
    if (deadline.unwanted != nullptr) {
      lock.unlock();
      absl::Status why = deadline.unwanted();
      lock.lock();
      if (!why.ok()) {
        call->stop.store(true, std::memory_order_relaxed);
        if (!call->changed.wait_for(lock, kStopping, [&] { return call->done; })) {
          leave();
        } else {
          lock.unlock();
          thread->join();
        }
        return why;
      }
    }
    if (deadline.ns == 0) continue;
    const std::optional<CallSeen> seen = call->spot.Look();
    // What is written has no deadline.
    const uint64_t ns = seen && seen->kind == CallKind::kRead ? scale.ToNanos(seen->ticks) : 0;
    // Behind a longer pause the whole process may have stood still, and the read with it.
    const bool paused = MonotonicNanos() - looked_at_ns > kPauseNs;
    looked_at_ns = MonotonicNanos();
    if (ns < deadline.ns || paused) continue;
    leave();
    return ReadDeadlineError({seen->kind, seen->doing, seen->path, seen->offset, ns}, deadline.ns);
  }
  lock.unlock();
  thread->join();
  return call->failure;
}

}  // namespace penstock
