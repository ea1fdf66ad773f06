// `penstock top`: all pipelines, live: what each does, what holds it up, and who waits.

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/shown_text.h"
#include "client/ctl/commands.h"
#include "client/ctl/daemon_connection.h"
#include "client/ctl/describe.h"
#include "client/ctl/describe_remote.h"
#include "client/ctl/found_daemons.h"
#include "client/ctl/json_line.h"
#include "client/ctl/terminal.h"
#include "client/ctl/world_argument.h"

namespace penstock::ctl {
namespace {

struct TopArguments {
  std::string name;  // "": all
  double interval_s = 1;
  uint64_t count = 0;  // 0: until it is stopped
  bool json = false;
};

std::string Count(double value) {
  if (value >= 1e9) return absl::StrFormat("%.1f G", value / 1e9);
  if (value >= 1e6) return absl::StrFormat("%.1f M", value / 1e6);
  if (value >= 1e4) return absl::StrFormat("%.1f k", value / 1e3);
  return absl::StrFormat(value >= 100 ? "%.0f" : "%.1f", value);
}

// Of what is counted there are no parts.
std::string Count(uint64_t number) {
  return number < 10'000 ? absl::StrCat(number) : Count(static_cast<double>(number));
}

std::string Bar(double share, int width) {
  const int full = std::clamp(static_cast<int>(share * width + 0.5), 0, width);
  std::string bar;
  for (int i = 0; i < width; ++i) bar += i < full ? "█" : "·";
  return bar;
}

// Steps that are ready for the slowest consumer, or in the ring while nobody is attached.
uint64_t ReadySteps(const v1::PipelineStats& stats) {
  bool is_read = false;
  uint64_t ready = 0;
  for (const v1::ConsumerStats& consumer : stats.consumers()) {
    if (consumer.detached() || consumer.left()) continue;
    is_read = true;
    ready = std::max<uint64_t>(ready, consumer.lag());
  }
  return is_read ? ready : std::min<uint64_t>(stats.steps(), stats.slots());
}

std::string Describe(const v1::PipelineStats& stats) {
  const v1::Analysis& now = stats.analysis();
  std::string out =
      absl::StrFormat("%s  %s%s\n", stats.name(), StateName(stats.state()),
                      stats.has_world() ? absl::StrCat("  ", DescribeWorld(stats.world())) : "");
  if (stats.has_error()) absl::StrAppend(&out, "  ", stats.error().message(), "\n");
  absl::StrAppend(
      &out, "  ",
      now.sentence().empty() ? "it has run for too short a time to tell" : now.sentence(), "\n");
  // There is nothing else: no worker, no ring, no consumer.
  if (stats.resting()) return absl::StrCat(out, "  goes on with step ", stats.steps(), "\n");
  absl::StrAppendFormat(&out,
                        "  %s rows/s  %s steps/s  %s/s read   step %u  epoch %u  %s records  "
                        "%u skipped\n",
                        Count(now.rows_per_s()), Count(now.steps_per_s()),
                        ByteCount(static_cast<uint64_t>(now.read_bytes_per_s())), stats.steps(),
                        stats.epoch(), Count(stats.records()), stats.skipped());
  absl::StrAppendFormat(&out,
                        "  %u %s: busy %.0f %%, blocked %.0f %%, starved %.0f %%   "
                        "ring %u of %u slots ready, %s\n",
                        stats.workers(), stats.workers() == 1 ? "worker" : "workers",
                        100 * now.busy(), 100 * now.blocked(), 100 * now.starved(),
                        ReadySteps(stats), stats.slots(), ByteCount(stats.ring_bytes()));
  if (stats.has_oldest_read()) absl::StrAppend(&out, "  ", DescribeCall(stats.oldest_read()), "\n");
  if (stats.has_oldest_write())
    absl::StrAppend(&out, "  ", DescribeCall(stats.oldest_write()), "\n");
  if (stats.has_oldest_work()) absl::StrAppend(&out, "  ", DescribeCall(stats.oldest_work()), "\n");
  absl::StrAppend(&out, "  ", DescribeWorkMemory(stats), "\n");
  if (stats.has_remote()) absl::StrAppend(&out, "  fetched ", DescribeRemote(stats), "\n");
  if (stats.tasks_away() > 0)
    absl::StrAppendFormat(&out, "  %u tasks are away, at others\n", stats.tasks_away());
  if (stats.has_numa()) out += DescribeNuma(stats, "  ");
  if (stats.autotune().tunes_workers())
    absl::StrAppendFormat(&out, "  workers chosen by the daemon (1 to %u): %s\n",
                          stats.autotune().most_workers(), stats.autotune().reason());
  for (const v1::TunedNumber& number : stats.autotune().number()) {
    if (number.on() && number.changes() > 0)
      absl::StrAppendFormat(&out, "  %s chosen by the daemon (%d to %d): %s\n", number.name(),
                            number.least(), number.most(), number.reason());
  }
  int width = 5;
  for (const v1::StageStats& stage : stats.stages())
    width = std::max(width, static_cast<int>(stage.name().size()));
  for (int i = 0; i < stats.stages_size(); ++i) {
    const double share = i < now.stage_busy_size() ? now.stage_busy(i) : 0;
    const std::string& name = stats.stages(i).name();
    const double starved = i < now.stage_starved_size() ? now.stage_starved(i) : 0;
    absl::StrAppendFormat(&out, "  %c %-*s %5.1f %% %s %5.1f %% starved  %s elements",
                          name == now.bottleneck() ? '>' : ' ', width, name, 100 * share,
                          Bar(share, 24), 100 * starved, Count(stats.stages(i).elements()));
    if (stats.stages(i).queue() > 0)
      absl::StrAppendFormat(&out, ", %s wait", Count(stats.stages(i).queue()));
    out += "\n";
    if (stats.stages(i).has_python_workers())
      absl::StrAppend(&out, "    ",
                      DescribePython(stats.stages(i).python_workers(),
                                     i < now.python_busy_size() ? now.python_busy(i) : 0),
                      "\n");
  }
  for (const v1::SharedPrefixStats& prefix : stats.shared_prefix())
    absl::StrAppend(&out, "  ", DescribeShared(prefix), "\n");
  for (const v1::WaitedFor& party : stats.waited_for()) {
    absl::StrAppendFormat(
        &out, "  others wait for group %s (%s%s) for %.1f s: penstock explain %s\n", party.group(),
        party.mode(), party.has_uid() ? absl::StrCat(", user ", party.uid()) : "", party.seconds(),
        stats.name());
  }
  if (stats.consumers().empty()) return out + "    no consumers\n";
  absl::StrAppendFormat(&out, "    %-8s %-12s %8s %10s %9s %6s %6s %s\n", "consumer", "group",
                        "pid", "step", "steps/s", "ready", "holds", "nothing ready");
  for (const v1::ConsumerStats& consumer : stats.consumers()) {
    absl::StrAppendFormat(&out, "  %c %-8u %-12s %8d %10u %9s %6u %6u %.0f %% of the time\n",
                          now.bottleneck() == "consumer" ? '>' : ' ', consumer.id(),
                          consumer.group(), consumer.pid(), consumer.position(),
                          Count(consumer.steps_per_s()), consumer.lag(), consumer.leases(),
                          100 * consumer.empty());
  }
  return out;
}

absl::StatusOr<std::vector<v1::PipelineStats>> Ask(DaemonConnection& daemon,
                                                   const std::string& name) {
  std::vector<v1::PipelineStats> all;
  std::vector<std::string> names = {name};
  if (name.empty()) {
    names.clear();
    const auto list = daemon.List();
    if (!list.ok()) return list.status();
    for (const v1::Pipeline& pipeline : list->pipelines()) names.push_back(pipeline.name());
  }
  for (const std::string& one : names) {
    auto stats = daemon.Stats(one);
    if (stats.ok()) {
      all.push_back(*std::move(stats));
    } else if (!name.empty() || stats.status().code() != absl::StatusCode::kNotFound) {
      return stats.status();  // one that was deleted since it was listed is left out
    }
  }
  return all;
}

// What one daemon runs.
struct Shown {
  std::string socket;
  bool is_named = true;  // by the user, or by default
  std::vector<v1::PipelineStats> pipelines;
};

// The daemon that was named; without a name the default one and, found anew at each look, those that nobody has named.
class Daemons {
 public:
  explicit Daemons(const std::string& socket)
      : socket_(socket), finds_(socket.empty() && getenv("PENSTOCK_SOCKET") == nullptr) {}

  absl::StatusOr<std::vector<Shown>> Ask(const std::string& name) {
    std::vector<std::string> sockets = {socket_};
    if (finds_) {
      for (std::string& found : FindDaemons()) sockets.push_back(std::move(found));
    }
    std::vector<Shown> all;
    absl::Status problem;
    for (const std::string& socket : sockets) {
      auto shown = AskOne(socket, name);
      if (shown.ok()) {
        all.push_back(*std::move(shown));
      } else {
        // One that has gone is opened anew where it comes back.
        open_.erase(socket);
        if (problem.ok()) problem = shown.status();
      }
    }
    if (all.empty()) return problem;
    return all;
  }

 private:
  absl::StatusOr<Shown> AskOne(const std::string& socket, const std::string& name) {
    auto daemon = open_.find(socket);
    if (daemon == open_.end()) {
      auto opened = DaemonConnection::Open(socket);
      if (!opened.ok()) return opened.status();
      daemon = open_.emplace(socket, *std::move(opened)).first;
    }
    auto pipelines = ctl::Ask(daemon->second, name);
    if (!pipelines.ok()) return pipelines.status();
    return Shown{daemon->second.socket(), socket == socket_, *std::move(pipelines)};
  }

  const std::string socket_;
  const bool finds_;
  std::map<std::string, DaemonConnection> open_;
};

absl::Status Show(const std::vector<Shown>& daemons, bool json, bool terminal, bool* written) {
  std::string out;
  if (json) {
    for (const Shown& daemon : daemons) {
      for (const v1::PipelineStats& stats : daemon.pipelines) {
        const auto line = JsonLine(stats, Zeros::kShown);
        if (!line.ok()) return line.status();
        out += *line;
      }
    }
  } else {
    bool any = false;
    for (const Shown& daemon : daemons) {
      if (daemon.pipelines.empty()) continue;
      any = true;
      if (daemons.size() > 1 || !daemon.is_named)
        absl::StrAppend(&out, "daemon ", daemon.socket, "\n");
      for (const v1::PipelineStats& stats : daemon.pipelines)
        absl::StrAppend(&out, Describe(stats), "\n");
    }
    if (!any) out += "no pipelines: start one with penstock create SPEC\n";
    if (terminal) {
      // To the first line, and each line's rest and what is below wiped, so that nothing flickers.
      out = absl::StrCat("\x1b[H", ShownText(out));
      for (size_t at = 0; (at = out.find('\n', at)) != out.npos; at += 4) out.insert(at, "\x1b[K");
      out += "\x1b[J";
      *written = Draw(stdout, out);
      return absl::OkStatus();
    }
  }
  // CommandLine says that stdout cannot be written; here it only ends.
  *written = std::fputs(out.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return absl::OkStatus();
}

absl::Status Top(const std::string& socket, const TopArguments& arguments) {
  Daemons daemons(socket);
  const bool terminal = !arguments.json && isatty(STDOUT_FILENO) == 1;
  if (terminal) Draw(stdout, "\x1b[2J");
  for (uint64_t shown = 0; arguments.count == 0 || shown < arguments.count; ++shown) {
    if (shown > 0) std::this_thread::sleep_for(std::chrono::duration<double>(arguments.interval_s));
    const auto all = daemons.Ask(arguments.name);
    if (!all.ok()) return all.status();
    bool written = false;
    absl::Status status = Show(*all, arguments.json, terminal, &written);
    if (!status.ok() || !written) return status;
  }
  return absl::OkStatus();
}

}  // namespace

void AddTop(Command root, const std::string& socket) {
  Command command = root.AddCommand(
      "top", "All pipelines live: rates, each stage's share, the bottleneck, who waits");
  auto arguments = std::make_shared<TopArguments>();
  command.Add("NAME", &arguments->name, "One pipeline only");
  command.Add("--interval", &arguments->interval_s, "Seconds between two looks")
      .InRange(0.05, 3600.0)
      .WithDefault();
  command.Add("--count", &arguments->count, "Looks; without it until it is stopped").Positive();
  command.AddFlag("--json", &arguments->json, "A PipelineStats (control.proto) as JSON a line");
  command.Runs([&socket, arguments] { return Report("top", Top(socket, *arguments)); });
}

}  // namespace penstock::ctl
