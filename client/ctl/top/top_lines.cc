#include "client/ctl/top/top_lines.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/arguments/world_argument.h"
#include "client/ctl/words/describe.h"
#include "client/ctl/words/describe_helpers.h"
#include "client/ctl/words/describe_remote.h"

namespace penstock::ctl {
namespace {

using Kind = TopLine::Kind;

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

class Lines {
 public:
  // Each line of the text is one.
  void Add(Kind kind, const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      lines_.push_back({kind, text.substr(at, end - at)});
      at = end + 1;
    }
  }
  std::vector<TopLine> Take() { return std::move(lines_); }

 private:
  std::vector<TopLine> lines_;
};

void AddNumbers(const v1::PipelineStats& stats, Lines* lines) {
  const v1::Analysis& now = stats.analysis();
  lines->Add(Kind::kPlain,
             absl::StrFormat(
                 "  %s rows/s  %s steps/s  %s/s read   step %u  epoch %u  %s records  %u skipped",
                 Count(now.rows_per_s()), Count(now.steps_per_s()),
                 ByteCount(static_cast<uint64_t>(now.read_bytes_per_s())), stats.steps(),
                 stats.epoch(), Count(stats.records()), stats.skipped()));
  lines->Add(Kind::kPlain,
             absl::StrFormat("  %u %s: busy %.0f %%, blocked %.0f %%, starved %.0f %%   "
                             "ring %u of %u slots ready, %s",
                             stats.workers(), stats.workers() == 1 ? "worker" : "workers",
                             100 * now.busy(), 100 * now.blocked(), 100 * now.starved(),
                             ReadySteps(stats), stats.slots(), ByteCount(stats.ring_bytes())));
  if (stats.has_oldest_read())
    lines->Add(Kind::kWarning, absl::StrCat("  ", DescribeCall(stats.oldest_read())));
  if (stats.has_oldest_write())
    lines->Add(Kind::kWarning, absl::StrCat("  ", DescribeCall(stats.oldest_write())));
  if (stats.has_oldest_work())
    lines->Add(Kind::kWarning, absl::StrCat("  ", DescribeCall(stats.oldest_work())));
  lines->Add(Kind::kPlain, absl::StrCat("  ", DescribeWorkMemory(stats)));
  if (stats.has_remote())
    lines->Add(Kind::kPlain, absl::StrCat("  fetched ", DescribeRemote(stats)));
  if (stats.tasks_away() > 0)
    lines->Add(Kind::kPlain, absl::StrFormat("  %u tasks are away, at others", stats.tasks_away()));
  for (const v1::HelperStats& helper : stats.helpers()) {
    lines->Add(helper.state() == "left out" ? Kind::kWarning : Kind::kPlain,
               absl::StrCat("  ", DescribeHelper(helper)));
  }
  if (stats.has_numa()) lines->Add(Kind::kPlain, DescribeNuma(stats, "  "));
  if (stats.autotune().tunes_workers()) {
    lines->Add(Kind::kPlain,
               absl::StrFormat("  workers chosen by the daemon (1 to %u): %s",
                               stats.autotune().most_workers(), stats.autotune().reason()));
  }
  for (const v1::TunedNumber& number : stats.autotune().number()) {
    if (number.on() && number.changes() > 0) {
      lines->Add(Kind::kPlain,
                 absl::StrFormat("  %s chosen by the daemon (%d to %d): %s", number.name(),
                                 number.least(), number.most(), number.reason()));
    }
  }
}

void AddStages(const v1::PipelineStats& stats, Lines* lines) {
  const v1::Analysis& now = stats.analysis();
  int width = 5;
  for (const v1::StageStats& stage : stats.stages())
    width = std::max(width, static_cast<int>(stage.name().size()));
  for (int i = 0; i < stats.stages_size(); ++i) {
    const v1::StageStats& stage = stats.stages(i);
    const double share = i < now.stage_busy_size() ? now.stage_busy(i) : 0;
    const double starved = i < now.stage_starved_size() ? now.stage_starved(i) : 0;
    const bool is_bottleneck = stage.name() == now.bottleneck();
    std::string text = absl::StrFormat("  %c %-*s %5.1f %% %s %5.1f %% starved  %s elements",
                                       is_bottleneck ? '>' : ' ', width, stage.name(), 100 * share,
                                       Bar(share, 24), 100 * starved, Count(stage.elements()));
    if (stage.queue() > 0) absl::StrAppendFormat(&text, ", %s wait", Count(stage.queue()));
    lines->Add(is_bottleneck ? Kind::kBottleneck : Kind::kStage, text);
    if (!stage.has_python_workers()) continue;
    const double busy = i < now.python_busy_size() ? now.python_busy(i) : 0;
    lines->Add(Kind::kPlain, absl::StrCat("    ", DescribePython(stage.python_workers(), busy)));
  }
}

void AddConsumers(const v1::PipelineStats& stats, const std::vector<std::string>& lanes,
                  Lines* lines) {
  if (stats.consumers().empty()) return lines->Add(Kind::kPlain, "    no consumers");
  lines->Add(Kind::kHead,
             absl::StrFormat("    %-8s %-12s %8s %10s %9s %6s %6s %s", "consumer", "group", "pid",
                             "step", "steps/s", "ready", "holds", "nothing ready"));
  const bool is_bottleneck = stats.analysis().bottleneck() == "consumer";
  for (int i = 0; i < stats.consumers_size(); ++i) {
    const v1::ConsumerStats& consumer = stats.consumers(i);
    lines->Add(is_bottleneck ? Kind::kBottleneck : Kind::kPlain,
               absl::StrFormat("  %c %-8u %-12s %8d %10u %9s %6u %6u %.0f %% of the time",
                               is_bottleneck ? '>' : ' ', consumer.id(), consumer.group(),
                               consumer.pid(), consumer.position(), Count(consumer.steps_per_s()),
                               consumer.lag(), consumer.leases(), 100 * consumer.empty()));
    if (static_cast<size_t>(i) < lanes.size())
      lines->Add(Kind::kLane, lanes[static_cast<size_t>(i)]);
  }
}

}  // namespace

std::vector<TopLine> TopLines(const v1::PipelineStats& stats,
                              const std::vector<std::string>& lanes) {
  Lines lines;
  lines.Add(
      Kind::kPipeline,
      absl::StrFormat("%s  %s%s", stats.name(), StateName(stats.state()),
                      stats.has_world() ? absl::StrCat("  ", DescribeWorld(stats.world())) : ""));
  if (stats.has_error()) lines.Add(Kind::kError, absl::StrCat("  ", stats.error().message()));
  const std::string& sentence = stats.analysis().sentence();
  lines.Add(
      Kind::kSentence,
      absl::StrCat("  ", sentence.empty() ? "it has run for too short a time to tell" : sentence));
  // There is nothing else: no worker, no ring, no consumer.
  if (stats.resting()) {
    lines.Add(Kind::kPlain, absl::StrCat("  goes on with step ", stats.steps()));
    return lines.Take();
  }
  AddNumbers(stats, &lines);
  AddStages(stats, &lines);
  for (const v1::SharedPrefixStats& prefix : stats.shared_prefix())
    lines.Add(Kind::kPlain, absl::StrCat("  ", DescribeShared(prefix)));
  for (const v1::WaitedFor& party : stats.waited_for()) {
    lines.Add(Kind::kWarning,
              absl::StrFormat("  others wait for group %s (%s%s) for %.1f s: penstock explain %s",
                              party.group(), party.mode(),
                              party.has_uid() ? absl::StrCat(", user ", party.uid()) : "",
                              party.seconds(), stats.name()));
  }
  AddConsumers(stats, lanes, &lines);
  return lines.Take();
}

std::string Joined(const std::vector<TopLine>& lines) {
  std::string text;
  for (const TopLine& line : lines) absl::StrAppend(&text, line.text, "\n");
  return text;
}

}  // namespace penstock::ctl
