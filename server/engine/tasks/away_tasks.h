// Tasks that are away: a worker has begun them, and somebody else ends them. That may be a disk's
// thread, a network's, or another process. No worker waits for one meanwhile.
//
//     queue ──Pop()──► worker ──Leave()──► away ──Completion::End()──► AwayTask::Ended(): in a queue again, or done
//
//     AwayTask     what can be away
//     AwayTasks    those of one executor
//
// Threads:  safe from any thread; Wait() by who stops the executor.
// Owns:     the marks of those that are away; no task. A task, and all that it refers to, lives
//           until it has ended.
// Limits:   those of who begins tasks: slots, and what sections and files have ahead.
// Cost:     a lock and an allocation for each time that a task goes away; nothing for tasks that do
//           not.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/completion.h"
#include "base/pending_call.h"
#include "base/tick_clock.h"
#include "server/engine/tasks/calls_under_way.h"
#include "server/engine/tasks/event.h"

namespace penstock {

class AwayTask {
 public:
  virtual ~AwayTask() = default;

  // It is back, on the thread that ended it: goes where a worker or the front finds it. From then
  // on it is theirs, and may leave again at once. Short, and without a lock that anybody holds for
  // long.
  virtual void Ended(absl::Status status) = 0;
};

// What is told of a task while it is away, as PendingCall tells it of a worker.
struct AwayCall {
  CallKind kind = CallKind::kRead;
  const char* doing = "";  // static text; "": nothing is told, as who does it shows that
  std::string path = {};
  uint64_t offset = 0;
  int stage = -1;  // which the time is charged to; -1: none
};

class AwayTasks {
 public:
  // Workers sleep at `work`; they are woken for each task that comes back. `stages`: how many there
  // are to be charged.
  AwayTasks(Event& work, size_t stages);
  // Waits until none is away.
  ~AwayTasks();
  AwayTasks(const AwayTasks&) = delete;
  AwayTasks& operator=(const AwayTasks&) = delete;

  // The task leaves: it belongs to whoever has the completion, until that is ended.
  Completion Leave(AwayTask* task, AwayCall call);

  // Nobody wants what is away any more, nor what leaves from now on: tells all who do it.
  void Cancel();
  // Until none is away. False once all that are left have taken as long as a call that hangs
  // (calls_under_way.h), or, where they read, `hung_read_ns`; those that can be cancelled, since
  // they were.
  bool WaitForAll(uint64_t hung_read_ns);
  // The same however long that takes.
  void WaitForAll();

  size_t size() const { return size_.load(std::memory_order_acquire); }
  // Those that have been away for so long.
  std::vector<CallUnderWay> CallsUnderWay(uint64_t ns_min) const;
  // What tasks of that stage have been away, together, in nanoseconds; with those that still are.
  uint64_t NanosOf(int stage) const;

 private:
  struct Mark final : Completion::Sink {
    void End(absl::Status status) override { tasks->End(this, std::move(status)); }
    void OnCancel(std::function<void()> cancel) override {
      tasks->OnCancel(this, std::move(cancel));
    }

    AwayTasks* tasks = nullptr;
    AwayTask* task = nullptr;
    AwayCall call;
    uint64_t since_ns = 0;
    bool ended = false;            // under mutex_, as those below
    std::function<void()> cancel;  // may be empty
    bool can_cancel = false;
    std::list<std::unique_ptr<Mark>>::iterator place;
  };

  void End(Mark* mark, absl::Status status);
  void OnCancel(Mark* mark, std::function<void()> cancel);

  Event& work_;
  std::atomic<size_t> size_{0};  // written under mutex_
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  uint64_t cancelled_ns_ = 0;  // under mutex_, as those below: when it was; 0: it was not
  std::list<std::unique_ptr<Mark>> away_;  // in the order in which they left
  std::vector<uint64_t> ns_;               // one a stage, of those that are back
};

}  // namespace penstock
