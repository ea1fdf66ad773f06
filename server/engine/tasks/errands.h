// Work that an order op has for others than the front, and that makes no elements: a block of a
// file that is to be written, the end of one, an index.
//
//     Errand       one of them; its op's
//     SlowErrand   one that mostly waits: for a disk, or until a file is gone through
//     Errands      those of one executor that no worker has begun, and threads for what waits
//
// Threads:  Push(), Start() and what is said of counts by the front; Pop() and Begin() by any
//           worker; everything else from any thread.
// Owns:     its threads; no errand. An errand lives until it is done.
// Limits:   kThreads threads, which begin when they are needed; the errands of the ops that have
//           some.
// Cost:     two locks an errand: its work should take much longer.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "base/completion.h"
#include "base/pending_call.h"
#include "base/tick_clock.h"
#include "server/engine/tasks/away_tasks.h"
#include "server/engine/tasks/calls_under_way.h"
#include "server/engine/tasks/work_queue.h"

namespace penstock {

class Errand : public AwayTask {
 public:
  // `kind` says when it hangs. `stage`: whose time it takes.
  Errand(CallKind kind, int stage) : kind_(kind), stage_(stage) {}

  // By a worker: does it, or has somebody else do it. It is done when `end` is told.
  virtual void Begin(Completion end) = 0;

  // Whether it is the front's again.
  bool done() const { return done_.load(std::memory_order_acquire); }  // SYNC errand-done
  // How it ended. REQUIRES: done().
  const absl::Status& status() const { return status_; }

  CallKind kind() const { return kind_; }
  int stage() const { return stage_; }

  void Ended(absl::Status status) final {
    status_ = std::move(status);
    done_.store(true, std::memory_order_release);  // SYNC errand-done
  }

 private:
  const CallKind kind_;
  const int stage_;
  absl::Status status_;  // written before done_
  std::atomic<bool> done_{false};
};

class Errands {
 public:
  static constexpr size_t kThreads = 4;

  explicit Errands(AwayTasks& away) : away_(away) {}
  // Waits for what its threads have been given.
  ~Errands();

  void Push(Errand* errand) { queue_.Push(errand); }
  bool empty() const { return queue_.empty(); }
  // One that nobody has begun, which is the caller's to begin; null when there is none.
  Errand* Pop() { return queue_.Pop(); }
  void Begin(Errand* errand) {
    // Who does it is in calls that show themselves.
    errand->Begin(away_.Leave(errand, {.kind = errand->kind(), .stage = errand->stage()}));
  }

  // Does it on one of its threads, so that no worker waits. Where the system has no thread, or none
  // is wanted, the caller does it.
  void Do(absl::AnyInvocable<void()> work);
  // From now on the caller does it: for who decides what happens when.
  void DoInPlace() { in_place_ = true; }

  // An op cannot tell its count yet, since it waits for an errand; how often that was said
  // (CountNow).
  void NoteCountWait() { ++num_count_waits_; }
  uint64_t num_count_waits() const { return num_count_waits_; }

  // The calls to a disk that its threads are in and that have taken so long.
  std::vector<CallUnderWay> CallsUnderWay(const TickScale& scale, uint64_t ns_min) const;

 private:
  void RunThread(size_t number);

  AwayTasks& away_;
  WorkQueue<Errand> queue_;
  std::atomic<bool> in_place_{false};
  uint64_t num_count_waits_ = 0;          // the front's
  std::array<CallSpot, kThreads> calls_;  // one a thread

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<absl::AnyInvocable<void()>> work_;  // under mutex_, as those below
  size_t at_work_ = 0;                           // threads that do something
  bool over_ = false;
  std::vector<std::thread> threads_;
};

// One that is done on a thread of the errands, so that neither the front nor a worker waits for it.
class SlowErrand : public Errand {
 public:
  using Errand::Errand;

  // By the front, once: begins it at once, whatever else there is to do. Without `errands` the
  // caller does it.
  void Start(Errands* errands);
  void Begin(Completion end) final;

 private:
  virtual absl::Status Do() = 0;

  Errands* errands_ = nullptr;
};

}  // namespace penstock
