// A process of the client's Python interpreter that computes rows at a desk.
//
// It has a session of its own, so that a terminal's Ctrl-C is none of its, and ends with the thread
// that started it.
//
// Threads:  Start() and all that waits for its end on the thread that owns the process, which lives
//           as long; Send() from any, one at a time; desk() as it says.
// Owns:     the process: it is killed and waited for with the object.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ring/descriptor.h"
#include "server/python/desk.h"
#include "server/python/function_file.h"
#include "server/python/messages.h"

namespace penstock::python {

class WorkerProcess {
 public:
  // `configuration`: JSON that the script reads.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Start(const FunctionFile& function,
                                                              const std::string& configuration);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  Desk& desk() { return *desk_; }
  pid_t pid() const { return pid_; }
  // Readable when there is a message, or an end.
  int socket() const { return socket_.get(); }
  // Readable at its end; -1 where the kernel has none.
  int pidfd() const { return pidfd_.get(); }

  // False where it does not take it: it has ended, or takes nothing any more.
  bool Send(const Message& message);
  enum class Received { kNothing, kMessage, kClosed };
  Received Receive(Message* message, std::string* text);

  // Has it write its stack (Stack()).
  void AskForStack();
  // What it has written of its stack, by that or as it crashed; "" for nothing.
  std::string Stack() const;

  void Kill();
  // Waits for its end, which Kill() has brought about or the system: "SIGSEGV", "exit status 3". Not longer than a second, as a
  // process in the kernel's hands cannot be hurried.
  std::string Wait();

 private:
  WorkerProcess() = default;

  std::unique_ptr<Desk> desk_;
  ring::Descriptor socket_;
  ring::Descriptor pidfd_;
  ring::Descriptor stack_;
  pid_t pid_ = -1;
  std::string ended_;  // how; "": not yet known
};

}  // namespace penstock::python
