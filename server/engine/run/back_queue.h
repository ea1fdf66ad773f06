// Tasks that were away and are back, for the next worker.
//
// Threads:  as WorkQueue; AlsoWake() before any task leaves.
#pragma once

#include <functional>
#include <utility>

#include "server/engine/tasks/work_queue.h"

namespace penstock {

template <typename Task>
class BackQueue final : public WorkQueue<Task> {
 public:
  // Called for each that comes back: for a worker that sleeps elsewhere than where AwayTasks wakes
  // it.
  void AlsoWake(std::function<void()> wake) { wake_ = std::move(wake); }
  void Push(Task* task) {
    WorkQueue<Task>::Push(task);
    if (wake_ != nullptr) wake_();
  }

 private:
  std::function<void()> wake_;  // may be empty
};

}  // namespace penstock
