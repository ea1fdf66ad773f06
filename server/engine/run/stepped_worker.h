// A worker without a thread: what Worker::Run() does in one go is cut where another worker may come
// between.
//
// Threads:  one thread calls everything.
#pragma once

#include <atomic>
#include <optional>

#include "server/engine/run/stepped_executor.h"
#include "server/engine/run/worker.h"
#include "server/engine/tasks/event.h"

namespace penstock {

class SteppedWorker {
 public:
  SteppedWorker(WorkSite& site, int number) : site_(site), worker_(site, number, nullptr, true) {}

  // As SteppedExecutor::StepWorker(); `stop`: it takes nothing any more.
  Stepped Step(const std::atomic<bool>& stop);

  Worker& worker() { return worker_; }

 private:
  WorkSite& site_;
  Worker worker_;
  // How far it is with going to sleep.
  std::optional<Event::Ticket> ticket_;
  bool asleep_ = false;
  bool waits_for_slot_ = false;
};

}  // namespace penstock
