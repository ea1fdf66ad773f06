// A worker that another user's process has started, who offers to (offers.h), and which that
// process ends when it is told so. What the worker writes is as untrusted as that of any other.
//
//     keeper's socket     daemon: "kill", "stack"     client: "ended SIGSEGV", "refused why"
//
// Whoever does not answer holds up nobody: the daemon lets go of both sockets and of the memory
// that it has filled.
//
// Threads:  as WorkerProcess.
// Owns:     its ends of the sockets, and the desk.
// Limits:   an answer of kMaxAnswerBytes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "server/python/function_file.h"
#include "server/python/offers.h"
#include "server/python/worker_process.h"

namespace penstock::python {

class OfferedWorker final : public WorkerProcess {
 public:
  static constexpr size_t kMaxAnswerBytes = 512;

  // Unavailable where the offer's process does not take it.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Start(const FunctionFile& function,
                                                              const std::string& configuration,
                                                              const Offer& offer);
  ~OfferedWorker() override;

  pid_t pid() const override { return 0; }
  int end_file() const override { return keeper_.get(); }
  void AskForStack() override { Tell("stack"); }
  void Kill() override { Tell("kill"); }
  std::string Wait() override;
  bool was_withdrawn() const override { return was_withdrawn_; }

 private:
  OfferedWorker() = default;
  void Tell(const char* what);

  ring::Descriptor keeper_;
  std::string ended_;  // how; "": not yet known
  bool was_withdrawn_ = false;
};

}  // namespace penstock::python
