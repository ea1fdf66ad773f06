// A process of the client's Python interpreter that computes rows at a desk.
//
// It has a session of its own, so that a terminal's Ctrl-C is none of its, and ends with whoever
// started it: this process (spawned_worker.h) or one of its own user (offered_worker.h).
//
// Threads:  all that waits for its end on the thread that owns the process, which lives as long;
//           Send() from any, one at a time; desk() as it says.
// Owns:     the process: it is ended with the object.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ring/descriptor.h"
#include "server/python/desk.h"
#include "server/python/messages.h"

namespace penstock::python {

// A worker's descriptors, in this order, from that number on: the function's file, inputs, outputs,
// its socket, where its stack goes.
inline constexpr int kFirstOfWorker = 3;
inline constexpr int kNumOfWorker = 5;

class WorkerProcess {
 public:
  virtual ~WorkerProcess() = default;
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  Desk& desk() { return *desk_; }
  // 0: not known here.
  virtual pid_t pid() const = 0;
  // Readable when there is a message, or an end.
  int socket() const { return socket_.get(); }
  // Readable at its end; -1 where nobody tells.
  virtual int end_file() const = 0;

  // False where it does not take it: it has ended, or takes nothing any more.
  bool Send(const Message& message);
  enum class Received { kNothing, kMessage, kClosed };
  Received Receive(Message* message, std::string* text);

  // Has it write its stack (Stack()).
  virtual void AskForStack() = 0;
  // What it has written of its stack, by that or as it crashed; "" for nothing.
  std::string Stack() const;

  virtual void Kill() = 0;
  // Waits for its end, which Kill() has brought about or the system: "SIGSEGV", "exit status 3".
  // Not longer than a second, as a process in the kernel's hands cannot be hurried.
  virtual std::string Wait() = 0;
  // Behind Wait(): whether it has ended, or never begun, as whoever started it has gone or refused
  // to. That is no row's fault.
  virtual bool was_withdrawn() const { return false; }

 protected:
  WorkerProcess() = default;

  // As recvmsg(), without waiting. The end of a peer that has messages unread is told by an
  // ECONNRESET in front of what it has sent before: that is received nevertheless.
  static ssize_t ReceivePacket(int socket, msghdr* header);

  // Makes what both have in common. Returns the worker's end of the socket.
  absl::StatusOr<ring::Descriptor> Open(const std::string& configuration);
  int stack_file() const { return stack_.get(); }

 private:
  std::unique_ptr<Desk> desk_;
  ring::Descriptor socket_;
  ring::Descriptor stack_;
};

}  // namespace penstock::python
