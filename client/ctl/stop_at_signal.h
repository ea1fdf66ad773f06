// A signal ends what a command does at addresses, and then the program: parts of an object that is being written are thrown away before.
//
// Threads:  constructed and destroyed by the first thread, before and after all others, as they are to leave the signals to this one.
// Owns:     a thread that waits for SIGINT, SIGTERM and SIGHUP, unless who started the program has them ignored (nohup). The first sets the
//           constructing thread's StopFlag, and the destructor ends the program by it; a second one ends it at once.
#pragma once

#include <signal.h>

#include <atomic>
#include <thread>

#include "base/stop_flag.h"

namespace penstock::ctl {

class StopAtSignal {
 public:
  StopAtSignal();
  ~StopAtSignal();
  StopAtSignal(const StopAtSignal&) = delete;
  StopAtSignal& operator=(const StopAtSignal&) = delete;

 private:
  void Wait();

  sigset_t before_;       // constant after construction
  const sigset_t taken_;  // behind before_, which it sets
  std::atomic<bool> is_over_{false};
  std::atomic<bool> is_stopped_{false};
  std::atomic<int> signal_{0};
  const StopFlag::Scope scope_;
  std::thread thread_;  // last: it uses what stands above
};

}  // namespace penstock::ctl
