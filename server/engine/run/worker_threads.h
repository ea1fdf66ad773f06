// The threads of an executor's workers: started, waited for, more or fewer of them, and left behind
// when they hang in a call to a disk.
//
// Threads:  IsOver() by workers; everything else from any thread, one after another. Nobody waits
//           for a worker that is too many: it ends behind the row, or the call, that it is in the
//           middle of, and goes on if it is one of them again by then.
// Owns:     the threads; whoever has told them to end must see Stop() through before this goes.
// Cost:     IsOver() is two readings of atomics.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/run/worker_gauges.h"
#include "server/engine/tasks/event.h"
#include "server/engine/tensor/batch_sink.h"

namespace penstock {

class WorkerThreads {
 public:
  // `work` is what worker number so does until IsOver(). Workers sleep at `event`, or in the sink's
  // WaitForSlot(). `stop` is the executor's; it tells all of them to end. `read_deadline_ns` as
  // ExecutorOptions has it. All that is referred to must outlive this.
  WorkerThreads(int workers, int max_workers, std::function<void(int)> work,
                std::atomic<bool>& stop, Event& event, BatchSink& sink, const WorkerGauges& gauges,
                uint64_t read_deadline_ns);

  // As Executor has them. Stop() and TryStop() set `stop`.
  absl::Status Start();
  void Stop();
  bool TryStop();
  bool HaveEnded() const;
  absl::Status SetNumber(int workers);

  int number() const { return number_.load(std::memory_order_seq_cst); }
  int max_number() const { return max_number_; }
  // A read that takes so long is not waited for by who wants an end.
  uint64_t hung_read_ns() const { return hung_read_ns_; }

  // Whether that worker is to end.
  bool IsOver(int worker) const {
    return stop_.load() || worker >= number_.load(std::memory_order_seq_cst);
  }

 private:
  // What a thread does.
  void Run(int worker);
  bool IsRunning(int worker) const;
  // Sets the number for the workers. REQUIRES: mutex_
  void Announce(int number);
  // Whether the worker is in a call to a disk that has taken too long to wait for.
  bool Hangs(int worker) const;
  void SetRunning(int worker, bool running);
  // Wakes the workers, whom stop_ has told to end, and waits for them: false once those that are
  // left hang, or kComputingNs have passed.
  // REQUIRES: mutex_
  bool WaitForEnd();
  absl::Status Add();  // REQUIRES: mutex_
  // Waits for all, whom stop_ has told to end. REQUIRES: mutex_
  void Remove();
  // Gives back the last threads that have ended. REQUIRES: mutex_
  void Reap();
  void WakeAll();

  // Constant after construction.
  const int max_number_;
  const std::function<void(int)> work_;
  const uint64_t hung_read_ns_;

  // Own synchronisation.
  std::atomic<bool>& stop_;
  Event& event_;
  BatchSink& sink_;
  const WorkerGauges& gauges_;
  std::atomic<int> number_;  // written under mutex_ and running_mutex_

  std::mutex mutex_;
  bool started_ = false;              // under mutex_
  std::vector<std::thread> threads_;  // under mutex_

  mutable std::mutex running_mutex_;
  std::condition_variable running_changed_;
  // Under running_mutex_: one a thread that was started; false once it has decided to end.
  std::vector<bool> running_;
};

}  // namespace penstock
