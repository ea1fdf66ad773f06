#include "client/ctl/terminal/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "base/shown_text.h"
#include "client/ctl/terminal/terminal.h"

namespace penstock::ctl {
namespace {

constexpr int kWidth = 30;
constexpr std::chrono::milliseconds kInterval(100);

}  // namespace

ProgressBar::ProgressBar(uint64_t total)
    : total_(std::max<uint64_t>(total, 1)), terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() { Clear(); }

void ProgressBar::Show(uint64_t done, const std::string& name) {
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kInterval;
  const double part = std::min(1.0, static_cast<double>(done) / total_);
  const int filled = static_cast<int>(part * kWidth);
  Draw(stderr, absl::StrFormat("\r[%s%s] %3d %%  %.60s\033[K", std::string(filled, '#'),
                               std::string(kWidth - filled, '.'), static_cast<int>(part * 100),
                               ShownText(name)));
  drawn_ = true;
}

void ProgressBar::Clear() {
  if (!drawn_) return;
  Draw(stderr, "\r\033[K");
  drawn_ = false;
}

}  // namespace penstock::ctl
