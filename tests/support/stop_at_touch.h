// Tells a thread to stop when it first comes to a place of memory (base/stop_flag.h): whether it
// looks between there and where it would end is then no matter of time.
//
// Threads:  one; one StopAtTouch of the process at a time.
// Owns:     how the page may be touched, and what a fault does, until it goes.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "base/stop_flag.h"

namespace penstock::test {

enum class Touch { kWrite, kAny };

class StopAtTouch {
 public:
  // All of the page that holds `at` must be the work's. `touch`: which one tells it.
  StopAtTouch(const void* at, Touch touch) {
    const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    page_ = reinterpret_cast<uintptr_t>(at) / page_bytes * page_bytes;
    page_bytes_ = page_bytes;
    stop_ = false;
    struct sigaction action = {};
    action.sa_sigaction = &OnFault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGSEGV, &action, &before_) != 0) std::abort();
    Protect(touch == Touch::kWrite ? PROT_READ : PROT_NONE);
  }
  ~StopAtTouch() {
    Protect(PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &before_, nullptr);
  }
  StopAtTouch(const StopAtTouch&) = delete;
  StopAtTouch& operator=(const StopAtTouch&) = delete;

  static bool was_touched() { return stop_; }

 private:
  static void Protect(int protection) {
    if (mprotect(reinterpret_cast<void*>(page_), page_bytes_, protection) != 0) std::abort();
  }
  static void OnFault(int number, siginfo_t* info, void*) {
    const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
    if (at < page_ || at >= page_ + page_bytes_) {
      // Another fault, which comes again.
      signal(number, SIG_DFL);
      return;
    }
    stop_ = true;
    Protect(PROT_READ | PROT_WRITE);
  }

  static inline uintptr_t page_ = 0, page_bytes_ = 0;
  static inline std::atomic<bool> stop_{false};
  struct sigaction before_ = {};
  const StopFlag::Scope scope_{&stop_};
};

}  // namespace penstock::test
