// Takes a pipeline along when a signal ends the program: a shared daemon would keep it for ever.
//
// Threads:  the constructor from the first thread, before others start, as they are to leave the signals to this one. The rest from that
//           thread.
// Owns:     a thread that waits for SIGINT, SIGTERM and SIGHUP, unless who started the program has them ignored (nohup). It ends the
//           program by the signal that came, after the pipeline; a second signal ends it at once.
// Cost:     a connection to the daemon, at a signal.
#pragma once

#include <signal.h>

#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "ring/descriptor.h"

namespace penstock::ctl {

class DeleteAtSignal {
 public:
  // `socket`: the daemon's, as DaemonConnection::Open has it.
  explicit DeleteAtSignal(std::string socket);
  ~DeleteAtSignal();
  DeleteAtSignal(const DeleteAtSignal&) = delete;
  DeleteAtSignal& operator=(const DeleteAtSignal&) = delete;

  // As long as it is held a signal waits: for what makes or deletes the pipeline. Where a signal has come it never returns.
  [[nodiscard]] std::unique_lock<std::mutex> Hold() { return std::unique_lock<std::mutex>(mutex_); }
  // "": none. REQUIRES: Hold().
  void SetPipeline(std::string name) { pipeline_ = std::move(name); }

 private:
  void Wait();
  [[noreturn]] void EndBy(int number);

  const std::string socket_;
  sigset_t before_;       // constant after construction
  const sigset_t taken_;  // behind before_, which it sets
  ring::Descriptor signals_;
  ring::Descriptor end_;
  std::mutex mutex_;
  std::string pipeline_;  // under mutex_
  std::thread thread_;    // last: it uses what stands above
};

}  // namespace penstock::ctl
