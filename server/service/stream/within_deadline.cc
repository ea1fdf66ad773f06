#include "server/service/stream/within_deadline.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/new_thread.h"
#include "base/pending_call.h"
#include "base/tick_clock.h"
#include "server/engine/run/calls_under_way.h"

namespace penstock {
namespace {

struct Call {
  CallSpot spot;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;  // under mutex
};

}  // namespace

absl::Status CallWithin(const ReadDeadline& deadline, const std::string& what,
                        std::function<void()> work) {
  constexpr auto kLook = std::chrono::milliseconds(20);
  constexpr uint64_t kPauseNs = 2'000'000'000;
  const TickScale scale;
  const auto call = std::make_shared<Call>();
  absl::StatusOr<std::thread> thread =
      NewThread("reading", [call, work = std::move(work)]() mutable {
        {
          const CallSpot::OfThisThread spot(call->spot);
          work();
          // What it holds goes with it, a result that nobody waits for too.
          work = nullptr;
        }
        std::lock_guard<std::mutex> lock(call->mutex);
        call->done = true;
        call->changed.notify_all();
      });
  if (!thread.ok()) return thread.status();
  uint64_t looked_at_ns = MonotonicNanos();
  std::unique_lock<std::mutex> lock(call->mutex);
  while (!call->changed.wait_for(lock, kLook, [&] { return call->done; })) {
    const std::optional<CallSeen> seen = call->spot.Look();
    // What is written has no deadline.
    const uint64_t ns = seen && seen->kind == CallKind::kRead ? scale.ToNanos(seen->ticks) : 0;
    // Behind a longer pause the whole process may have stood still, and the read with it.
    const bool paused = MonotonicNanos() - looked_at_ns > kPauseNs;
    looked_at_ns = MonotonicNanos();
    if (ns < deadline.ns || paused) continue;
    lock.unlock();
    deadline.leftovers->Take(what, *std::move(thread), [call] {
      std::lock_guard<std::mutex> done_lock(call->mutex);
      return call->done;
    });
    return ReadDeadlineError({seen->kind, seen->doing, seen->path, seen->offset, ns}, deadline.ns);
  }
  lock.unlock();
  thread->join();
  return absl::OkStatus();
}

}  // namespace penstock
