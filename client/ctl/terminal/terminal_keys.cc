#include "client/ctl/terminal/terminal_keys.h"

#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <thread>

namespace penstock::ctl {
namespace {

// For the handler of signals; constant while it is set.
termios before{};

void PutBack() { tcsetattr(STDIN_FILENO, TCSANOW, &before); }

void PutBackAndEnd(int number) {
  PutBack();
  signal(number, SIG_DFL);
  raise(number);
}

Key KeyOf(std::string_view bytes) {
  if (bytes == "q" || bytes == "Q") return Key::kQuit;
  if (bytes == "\x03") return Key::kInterrupt;
  if (bytes == "\x1a") return Key::kSuspend;
  if (bytes == "\x1b[A" || bytes == "\x1bOA" || bytes == "k") return Key::kUp;
  if (bytes == "\x1b[B" || bytes == "\x1bOB" || bytes == "j") return Key::kDown;
  if (bytes == "\r" || bytes == "\n") return Key::kEnter;
  if (bytes == " ") return Key::kSpace;
  if (bytes == "+" || bytes == "=") return Key::kPlus;
  if (bytes == "-") return Key::kMinus;
  return Key::kOther;
}

}  // namespace

TerminalKeys::TerminalKeys() {
  if (isatty(STDIN_FILENO) != 1 || tcgetpgrp(STDIN_FILENO) != getpgrp()) return;
  if (tcgetattr(STDIN_FILENO, &before) != 0) return;
  has_keys_ = true;
  Take();
  signal(SIGTERM, PutBackAndEnd);
  signal(SIGHUP, PutBackAndEnd);
}

TerminalKeys::~TerminalKeys() {
  if (!has_keys_) return;
  PutBack();
  signal(SIGTERM, SIG_DFL);
  signal(SIGHUP, SIG_DFL);
}

void TerminalKeys::Take() {
  termios now = before;
  // Signals' keys come as bytes, so that the terminal is put back before they have their effect.
  now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
  now.c_cc[VMIN] = 1;
  now.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &now);
}

void TerminalKeys::Suspend() {
  PutBack();
  raise(SIGTSTP);
  Take();
}

void TerminalKeys::Interrupt() {
  PutBack();
  signal(SIGINT, SIG_DFL);
  raise(SIGINT);
}

Key TerminalKeys::Wait(std::chrono::duration<double> timeout) {
  if (!has_keys_) {
    std::this_thread::sleep_for(timeout);
    return Key::kNone;
  }
  pollfd stdin_poll = {STDIN_FILENO, POLLIN, 0};
  const double ms = std::clamp(std::ceil(timeout.count() * 1000), 0.0, 3.6e6);
  if (poll(&stdin_poll, 1, static_cast<int>(ms)) <= 0) return Key::kNone;
  // An arrow's bytes come at once; one byte of several keys at a time.
  char bytes[8];
  const ssize_t first = read(STDIN_FILENO, bytes, 1);
  // The terminal has gone.
  if (first <= 0) return Key::kQuit;
  ssize_t count = 1;
  if (bytes[0] == '\x1b') {
    while (count < 3 && poll(&stdin_poll, 1, 20) > 0 && read(STDIN_FILENO, bytes + count, 1) == 1)
      ++count;
  }
  return KeyOf(std::string_view(bytes, static_cast<size_t>(count)));
}

}  // namespace penstock::ctl
