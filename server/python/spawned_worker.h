// A worker that this process has started itself: one of its own user.
//
// Threads:  as WorkerProcess; Start() on the thread that owns it, with which the process ends.
// Owns:     the process: it is killed and waited for with the object.
#pragma once

#include <memory>
#include <string>

#include "server/python/function_file.h"
#include "server/python/worker_process.h"

namespace penstock::python {

class SpawnedWorker final : public WorkerProcess {
 public:
  // `configuration`: JSON that the script reads. REQUIRES: the function has a file.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Start(const FunctionFile& function,
                                                              const std::string& configuration);
  ~SpawnedWorker() override;

  pid_t pid() const override { return pid_; }
  int end_file() const override { return pidfd_.get(); }
  void AskForStack() override;
  void Kill() override;
  std::string Wait() override;

 private:
  SpawnedWorker() = default;

  ring::Descriptor pidfd_;
  pid_t pid_ = -1;
  std::string ended_;  // how; "": not yet known
};

}  // namespace penstock::python
