// Keys of whoever sits at the terminal, one by one, for as long as this is there.
//
// Threads:  one thread, and one object at a time. SIGTERM and SIGHUP put the terminal back before
//           they end the process.
// Owns:     how the terminal of stdin treats keys, which it puts back.
#pragma once

#include <chrono>

namespace penstock::ctl {

enum class Key {
  kNone,
  kQuit,
  kInterrupt,
  kSuspend,
  kUp,
  kDown,
  kEnter,
  kSpace,
  kPlus,
  kMinus,
  kOther
};

class TerminalKeys {
 public:
  // Without an effect where stdin is no terminal, or one that this process is in the background of:
  // then there are no keys.
  TerminalKeys();
  ~TerminalKeys();
  TerminalKeys(const TerminalKeys&) = delete;
  TerminalKeys& operator=(const TerminalKeys&) = delete;

  bool has_keys() const { return has_keys_; }
  // The next key, or kNone when the time is over.
  Key Wait(std::chrono::duration<double> timeout);
  // Gives the terminal back to the shell until the process is to go on.
  void Suspend();
  // Ends the process as SIGINT does.
  void Interrupt();

 private:
  void Take();

  bool has_keys_ = false;
};

}  // namespace penstock::ctl
