// Brings back the pipelines that a daemon before this one had, on threads of its own: neither a
// disk that hangs nor an index that takes long holds up anybody else. Each is tried again and again
// until it is back, deleted, or the daemon ends.
//
// Threads:  the event loop's; files are read on up to kThreads others, until all are back.
// Owns:     those threads: the destructor waits for their reads.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/service/attach/sessions.h"
#include "server/service/pipeline/pipeline_table.h"
#include "server/service/socket/event_loop.h"
#include "server/service/socket/task_pool.h"

namespace penstock {

class Restorer {
 public:
  static constexpr int kThreads = 16;

  // `first_delay`: between the first two tries of a pipeline; it doubles up to a minute.
  Restorer(EventLoop& loop, PipelineTable& table, Sessions& sessions,
           absl::Duration first_delay = absl::Seconds(1))
      : loop_(loop), table_(table), sessions_(sessions), first_delay_(first_delay) {
    table_.OnTakenBack(
        [this](const std::string& name) { loop_.Post([this, name] { TakeBack(name); }); });
  }
  ~Restorer();

  // Waits until each has been tried once, but no longer than `patience`: what the daemon is asked
  // at first finds them there.
  absl::Status Start(absl::Duration patience);

  // Brings back one that was set aside and is tried again.
  void TakeBack(const std::string& name);

 private:
  struct Expected {
    absl::Duration delay;
    std::string failure;  // as it was logged last
    EventLoop::Id timer = 0;
  };
  using Result = absl::StatusOr<std::shared_ptr<Pipeline>>;

  void Try(const std::string& name);
  void Tried(const std::string& name, const Result& result);

  EventLoop& loop_;
  PipelineTable& table_;
  Sessions& sessions_;
  const absl::Duration first_delay_;
  std::map<std::string, Expected> expected_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> untried_;  // under mutex_
  // Last: its tasks use what stands above. Null when all are back.
  std::unique_ptr<TaskPool> pool_;
};

}  // namespace penstock
