#include "base/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/memory_account.h"
#include "base/new_thread.h"
#include "base/pending_call.h"
#include "base/stop_flag.h"
#include "base/tick_clock.h"

namespace penstock {
namespace {

constexpr std::chrono::milliseconds kLook(20);

// How long the longest of their reads has taken so far; 0: nobody reads.
uint64_t LongestRead(const std::deque<CallSpot>& spots) {
  uint64_t longest = 0;
  for (const CallSpot& spot : spots) {
    const std::optional<CallSeen> seen = spot.Look();
    if (seen && seen->kind == CallKind::kRead) longest = std::max(longest, seen->ticks);
  }
  return longest;
}

}  // namespace

void SideBySide(size_t threads, const char* doing, const std::string& path,
                absl::FunctionRef<void()> work) {
  std::mutex mutex;
  std::condition_variable changed;
  size_t working = 0;         // under mutex: others
  std::exception_ptr thrown;  // under mutex
  const auto do_work = [&] {
    try {
      work();
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex);
      if (thrown == nullptr) thrown = std::current_exception();
    }
  };
  std::deque<CallSpot> spots;
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i) {
    CallSpot& spot = spots.emplace_back();
    {
      std::lock_guard<std::mutex> lock(mutex);
      ++working;
    }
    absl::StatusOr<std::thread> other = NewThread(
        doing,
        [&, stop = StopFlag::OfThisThread(), memory = MemoryAccount::OfThisThread(), spot = &spot] {
          {
            const CallSpot::OfThisThread shown(*spot);
            const StopFlag::Scope scope(stop);
            const MemoryAccount::Scope charged(memory);
            do_work();
          }
          std::lock_guard<std::mutex> lock(mutex);
          --working;
          changed.notify_all();
        });
    if (other.ok()) {
      others.push_back(*std::move(other));
      continue;
    }
    // Fewer of them do it as well.
    std::lock_guard<std::mutex> lock(mutex);
    --working;
    break;
  }
  do_work();
  {
    // Who watches this thread sees a read of the others that hangs.
    std::optional<PendingCall> shown;
    uint64_t since = 0;
    std::unique_lock<std::mutex> lock(mutex);
    while (!changed.wait_for(lock, kLook, [&] { return working == 0; })) {
      const uint64_t longest = LongestRead(spots);
      if (shown && longest >= Ticks() - since) continue;
      shown.reset();
      if (longest == 0) continue;
      shown.emplace(doing, path);
      since = Ticks();
    }
  }
  for (std::thread& other : others) other.join();
  if (thrown != nullptr) std::rethrow_exception(thrown);
}

void EachSideBySide(size_t threads, size_t count, const char* doing, const std::string& path,
                    absl::FunctionRef<void(size_t)> work) {
  std::atomic<size_t> next{0};
  SideBySide(std::min(threads, count), doing, path, [&] {
    for (size_t i; (i = next.fetch_add(1)) < count;) work(i);
  });
}

}  // namespace penstock
