#include "client/ctl/top/top.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/daemon/daemon_connection.h"
#include "client/ctl/terminal/terminal.h"
#include "client/ctl/terminal/terminal_keys.h"
#include "client/ctl/top/top_daemons.h"
#include "client/ctl/top/top_lanes.h"
#include "client/ctl/top/top_lines.h"
#include "client/ctl/top/top_screen.h"
#include "client/ctl/words/json_line.h"

namespace penstock::ctl {
namespace {

constexpr double kLeastInterval = 0.05;
constexpr double kMostInterval = 3600;

struct TopArguments {
  std::string name;  // "": all
  double interval_s = 1;
  uint64_t count = 0;  // 0: until it is stopped
  bool json = false;
};

// `lanes`: null for a file or a pipe.
std::vector<TopLine> LinesOf(const std::vector<TopDaemon>& daemons, TopLanes* lanes) {
  std::vector<TopLine> lines;
  bool any = false;
  if (lanes != nullptr) lanes->BeginLook();
  for (const TopDaemon& daemon : daemons) {
    if (daemon.pipelines.empty()) continue;
    any = true;
    if (daemons.size() > 1 || !daemon.is_named)
      lines.push_back({TopLine::Kind::kDaemon, absl::StrCat("daemon ", daemon.socket)});
    for (const v1::PipelineStats& stats : daemon.pipelines) {
      const std::vector<std::string> waits =
          lanes == nullptr ? std::vector<std::string>() : lanes->Look(daemon.socket, stats);
      for (TopLine& line : TopLines(stats, waits)) lines.push_back(std::move(line));
      lines.push_back({});
    }
  }
  if (!any) {
    lines.push_back({TopLine::Kind::kPlain, "no pipelines: start one with penstock create SPEC"});
  }
  return lines;
}

absl::Status Json(const std::vector<TopDaemon>& daemons, std::string* out) {
  for (const TopDaemon& daemon : daemons) {
    for (const v1::PipelineStats& stats : daemon.pipelines) {
      const auto line = JsonLine(stats, Zeros::kShown);
      if (!line.ok()) return line.status();
      *out += *line;
    }
  }
  return absl::OkStatus();
}

// Looks for a file or a pipe.
absl::Status Print(TopDaemons& daemons, const TopArguments& arguments) {
  for (uint64_t shown = 0; arguments.count == 0 || shown < arguments.count; ++shown) {
    if (shown > 0) std::this_thread::sleep_for(std::chrono::duration<double>(arguments.interval_s));
    const auto all = daemons.Ask(arguments.name);
    if (!all.ok()) return all.status();
    std::string out;
    if (arguments.json) {
      if (absl::Status status = Json(*all, &out); !status.ok()) return status;
    } else {
      out = Joined(LinesOf(*all, nullptr));
    }
    // CommandLine says that stdout cannot be written; here it only ends.
    if (std::fputs(out.c_str(), stdout) < 0 || std::fflush(stdout) != 0) return absl::OkStatus();
  }
  return absl::OkStatus();
}

// What a terminal shows, and what keys make of it.
class Screen {
 public:
  Screen(TopDaemons& daemons, const TopArguments& arguments)
      : daemons_(daemons), arguments_(arguments), interval_s_(arguments.interval_s) {
    view_.has_keys = keys_.has_keys();
    const char* const no_color = getenv("NO_COLOR");
    view_.colours = no_color == nullptr || *no_color == '\0';
  }

  absl::Status Run() {
    if (!Draw(stdout, "\x1b[2J")) return absl::OkStatus();
    for (uint64_t shown = 0; arguments_.count == 0 || shown < arguments_.count;) {
      if (!holds_ || shown == 0) {
        const auto all = daemons_.Ask(arguments_.name);
        if (!all.ok()) return all.status();
        lines_ = LinesOf(*all, &lanes_);
        ++shown;
      }
      if (arguments_.count != 0 && shown == arguments_.count) {
        Show();
        break;
      }
      if (!Show() || !WaitForNextLook()) break;
    }
    // What a shell writes comes below.
    if (view_.has_keys) Draw(stdout, "\n");
    return absl::OkStatus();
  }

 private:
  bool Show() {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
      view_.rows = size.ws_row;
      view_.columns = size.ws_col;
    }
    view_.notice = holds_ ? "held" : absl::StrFormat("every %g s", interval_s_);
    if (!alone_) return Draw(stdout, TopScreen(lines_, view_));
    // The chosen pipeline's lines: from its head to the next one's.
    std::vector<TopLine> lines;
    size_t head = 0;
    for (const TopLine& line : lines_) {
      if (line.kind == TopLine::Kind::kDaemon) continue;
      head += line.kind == TopLine::Kind::kPipeline;
      if (head == view_.chosen + 1) lines.push_back(line);
    }
    return Draw(stdout, TopScreen(lines, view_));
  }

  // False when it is to end.
  bool WaitForNextLook() {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(interval_s_));
    for (;;) {
      const std::chrono::duration<double> left = end - Clock::now();
      const Key key = keys_.Wait(left);
      if (key == Key::kNone) return true;
      if (key == Key::kQuit) return false;
      if (key == Key::kInterrupt) {
        Draw(stdout, "\n");
        keys_.Interrupt();
      }
      const bool looks_now = Take(key);
      if (!Show()) return false;
      if (looks_now) return true;
    }
  }

  // Whether the next look is to come at once.
  bool Take(Key key) {
    size_t heads = 0;
    for (const TopLine& line : lines_) heads += line.kind == TopLine::Kind::kPipeline;
    const size_t last = heads == 0 ? 0 : heads - 1;
    view_.chosen = std::min(view_.chosen, last);
    switch (key) {
      case Key::kUp:
        view_.chosen -= view_.chosen > 0;
        return false;
      case Key::kDown:
        view_.chosen += view_.chosen < last;
        return false;
      case Key::kEnter:
        alone_ = !alone_;
        return false;
      case Key::kSpace:
        holds_ = !holds_;
        return !holds_;
      case Key::kPlus:
        interval_s_ = std::min(2 * interval_s_, kMostInterval);
        return true;
      case Key::kMinus:
        interval_s_ = std::max(interval_s_ / 2, kLeastInterval);
        return true;
      case Key::kSuspend:
        keys_.Suspend();
        Draw(stdout, "\x1b[2J");
        return true;
      default:
        return false;
    }
  }

  TopDaemons& daemons_;
  const TopArguments& arguments_;
  TerminalKeys keys_;
  TopLanes lanes_;
  TopView view_;
  double interval_s_;
  bool holds_ = false;  // shows what it has shown
  bool alone_ = false;  // shows the chosen pipeline only
  std::vector<TopLine> lines_;
};

absl::Status Top(const std::string& socket, const TopArguments& arguments) {
  TopDaemons daemons(socket);
  if (arguments.json || isatty(STDOUT_FILENO) != 1) return Print(daemons, arguments);
  return Screen(daemons, arguments).Run();
}

}  // namespace

void AddTop(Command root, const std::string& socket) {
  Command command = root.AddCommand(
      "top", "All pipelines live: rates, each stage's share, the bottleneck, who waits");
  auto arguments = std::make_shared<TopArguments>();
  command.Add("NAME", &arguments->name, "One pipeline only");
  command.Add("--interval", &arguments->interval_s, "Seconds between two looks")
      .InRange(kLeastInterval, kMostInterval)
      .WithDefault();
  command.Add("--count", &arguments->count, "Looks; without it until it is stopped").Positive();
  command.AddFlag("--json", &arguments->json, "A PipelineStats (control.proto) as JSON a line");
  command.Runs([&socket, arguments] { return Report("top", Top(socket, *arguments)); });
}

}  // namespace penstock::ctl
