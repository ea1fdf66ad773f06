// `penstock stats`: what a pipeline does, and what holds it up.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/daemon/daemon_connection.h"
#include "client/ctl/words/describe.h"
#include "client/ctl/words/describe_helpers.h"
#include "client/ctl/words/describe_remote.h"
#include "client/ctl/words/json_line.h"

namespace penstock::ctl {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// What happened between two snapshots; from the beginning if the first is empty.
struct Interval {
  const v1::PipelineStats& from;
  const v1::PipelineStats& to;

  double seconds() const { return 1e-9 * static_cast<double>(to.running_ns() - from.running_ns()); }
  double Rate(uint64_t amount) const {
    return seconds() > 0 ? static_cast<double>(amount) / seconds() : 0;
  }
  // In percent of the interval.
  double Share(uint64_t ns) const { return 100 * 1e-9 * Rate(ns); }
};

void PrintTotals(const Interval& interval) {
  const v1::PipelineStats& stats = interval.to;
  std::printf("pipeline    %s (%s)\n", stats.name().c_str(), StateName(stats.state()).c_str());
  if (stats.has_error()) std::printf("error       %s\n", stats.error().message().c_str());
  std::printf("steps       %llu  (%.1f/s)\n", static_cast<unsigned long long>(stats.steps()),
              interval.Rate(stats.steps() - interval.from.steps()));
  std::printf("rows        %llu  (%.1f/s)\n", static_cast<unsigned long long>(stats.rows()),
              interval.Rate(stats.rows() - interval.from.rows()));
  std::printf("epoch       %llu\n", static_cast<unsigned long long>(stats.epoch()));
  std::printf("read        %llu records, %s\n", static_cast<unsigned long long>(stats.records()),
              ByteCount(stats.bytes_read()).c_str());
  if (stats.has_oldest_read())
    std::printf("hangs       %s\n", DescribeCall(stats.oldest_read()).c_str());
  if (stats.has_oldest_write())
    std::printf("hangs       %s\n", DescribeCall(stats.oldest_write()).c_str());
  if (stats.has_oldest_work())
    std::printf("hangs       %s\n", DescribeCall(stats.oldest_work()).c_str());
  std::printf("workers     %u\n", stats.workers());
  const std::string used = stats.used_slots() > 0 && stats.used_slots() < stats.slots()
                               ? " (" + std::to_string(stats.used_slots()) + " are used)"
                               : "";
  std::printf("ring        %u slots%s, %s%s%s\n", stats.slots(), used.c_str(),
              ByteCount(stats.ring_bytes()).c_str(),
              stats.small_pages() ? ", without huge pages" : "",
              stats.resting() ? "; it rests: nobody reads it" : "");
  std::printf("memory      %s\n", DescribeWorkMemory(stats).c_str());
  if (stats.has_remote()) std::printf("fetched     %s\n", DescribeRemote(stats).c_str());
  if (stats.tasks_away() > 0)
    std::printf("away        %u tasks, whose work others do\n", stats.tasks_away());
  if (stats.has_numa()) std::printf("%s", DescribeNuma(stats, "NUMA        ").c_str());
  // A wait is counted as a whole when it ends, though it may have begun before the interval.
  std::printf("slot wait   %.1f %% of the time\n",
              std::min(100.0, interval.Share(stats.slot_wait_ns() - interval.from.slot_wait_ns())));
}

void PrintStages(const Interval& interval) {
  int width = 5;
  for (const v1::StageStats& stage : interval.to.stages()) {
    width = std::max(width, static_cast<int>(stage.name().size()));
  }
  // The share of all workers' time.
  const double workers = std::max<double>(interval.to.workers(), 1);
  std::printf("\n%-*s  %14s  %7s\n", width, "STAGE", "ELEMENTS", "BUSY");
  for (int i = 0; i < interval.to.stages_size(); ++i) {
    const v1::StageStats& stage = interval.to.stages(i);
    const uint64_t before = i < interval.from.stages_size() ? interval.from.stages(i).busy_ns() : 0;
    std::printf("%-*s  %14llu  %5.1f %%\n", width, stage.name().c_str(),
                static_cast<unsigned long long>(stage.elements()),
                interval.Share(std::max(stage.busy_ns(), before) - before) / workers);
  }
  for (const v1::StageStats& stage : interval.to.stages()) {
    if (stage.away_ns() > 0)
      std::printf("\ntasks of %s were away for %.1f s in all\n", stage.name().c_str(),
                  1e-9 * static_cast<double>(stage.away_ns()));
  }
  for (int i = 0; i < interval.to.stages_size(); ++i) {
    const v1::StageStats& stage = interval.to.stages(i);
    if (!stage.has_python_workers()) continue;
    const v1::PythonWorkers& python = stage.python_workers();
    const uint64_t before =
        i < interval.from.stages_size() ? interval.from.stages(i).python_workers().busy_ns() : 0;
    const double busy = interval.Share(std::max(python.busy_ns(), before) - before) / 100 /
                        std::max<double>(python.workers(), 1);
    std::printf("\n%s: %s\n", stage.name().c_str(), DescribePython(python, busy).c_str());
  }
  for (const v1::StageStats& stage : interval.to.stages()) {
    if (!stage.has_kept()) continue;
    const v1::KeptStats& kept = stage.kept();
    std::printf("\n%s keeps %llu elements, %s (%s); %llu were taken from there\n",
                stage.name().c_str(), static_cast<unsigned long long>(kept.elements()),
                ByteCount(kept.bytes()).c_str(), kept.state().c_str(),
                static_cast<unsigned long long>(kept.hits()));
  }
}

void PrintHelpers(const v1::PipelineStats& stats) {
  for (const v1::HelperStats& helper : stats.helpers())
    std::printf("\n%s\n", DescribeHelper(helper).c_str());
}

// What the last pack among an input's stages has packed; null: there is none.
const v1::PackedStats* PackedOf(const v1::Input& input, const v1::PipelineStats& stats) {
  const v1::PackedStats* packed = nullptr;
  for (const v1::Stage& stage : input.stage()) {
    for (const v1::StageStats& one : stats.stages())
      if (one.name() == stage.name() && one.has_packed()) packed = &one.packed();
  }
  return packed;
}

// How often each input of a stage that weighs its inputs was drawn since the stream began, beside
// its weight; and how many tokens came of it, where each input packs. `stats` names an input by its
// last stage.
void PrintDrawn(const v1::Stage& stage, const v1::PipelineStats& stats) {
  const auto* oneof = v1::Stage::descriptor()->FindOneofByName("op");
  const FieldDescriptor* op = stage.GetReflection()->GetOneofFieldDescriptor(stage, oneof);
  if (op == nullptr) return;
  const Message& options = stage.GetReflection()->GetMessage(stage, op);
  const Reflection& reflection = *options.GetReflection();
  std::vector<FieldDescriptor const*> fields;
  reflection.ListFields(options, &fields);
  std::vector<const v1::Input*> inputs;
  for (const FieldDescriptor* field : fields) {
    if (field->message_type() != v1::Input::descriptor()) continue;
    const int count = field->is_repeated() ? reflection.FieldSize(options, field) : 1;
    for (int i = 0; i < count; ++i) {
      const Message& input = field->is_repeated() ? reflection.GetRepeatedMessage(options, field, i)
                                                  : reflection.GetMessage(options, field);
      inputs.push_back(static_cast<const v1::Input*>(&input));
    }
  }
  for (const v1::Input* input : inputs) {
    for (const v1::Stage& nested : input->stage()) PrintDrawn(nested, stats);
  }
  const auto found = std::find_if(stats.stages().begin(), stats.stages().end(),
                                  [&](const auto& one) { return one.name() == stage.name(); });
  if (found == stats.stages().end() || inputs.empty() ||
      found->input_weight_size() != static_cast<int>(inputs.size()))
    return;
  std::vector<uint64_t> drawn, tokens;
  std::vector<double> wanted;
  size_t width = stage.name().size() + 6;
  for (const v1::Input* input : inputs) {
    const std::string& name = input->stage(input->stage_size() - 1).name();
    width = std::max(width, name.size());
    drawn.push_back(0);
    for (const v1::StageStats& one : stats.stages())
      if (one.name() == name) drawn.back() = one.elements();
    if (const v1::PackedStats* const packed = PackedOf(*input, stats); packed != nullptr)
      tokens.push_back(packed->tokens());
    wanted.push_back(found->input_weight(static_cast<int>(wanted.size())));
  }
  const auto share = [](const auto& of, size_t i) {
    const double sum = std::accumulate(of.begin(), of.end(), 0.0);
    return sum > 0 ? 100 * static_cast<double>(of[i]) / sum : 0;
  };
  const bool has_tokens = tokens.size() == inputs.size();
  const auto tokens_of = [&](size_t i) {
    return has_tokens ? absl::StrFormat("  %14d  %5.1f %%", tokens[i], share(tokens, i))
                      : std::string();
  };
  std::printf("\n%-*s  %14s  %7s%s  %7s  (with what is read ahead)\n", static_cast<int>(width),
              (stage.name() + " DRAWS").c_str(), "ELEMENTS", "SHARE",
              has_tokens ? "          TOKENS    SHARE" : "", "WEIGHT");
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::printf("%-*s  %14llu  %5.1f %%%s  %5.1f %%\n", static_cast<int>(width),
                inputs[i]->stage(inputs[i]->stage_size() - 1).name().c_str(),
                static_cast<unsigned long long>(drawn[i]), share(drawn, i), tokens_of(i).c_str(),
                share(wanted, i));
  }
}

void PrintShared(const v1::PipelineStats& stats) {
  for (const v1::SharedPrefixStats& prefix : stats.shared_prefix())
    std::printf("\n%s\n", DescribeShared(prefix).c_str());
}

void PrintConsumers(const v1::PipelineStats& stats) {
  if (stats.consumers().empty()) {
    std::printf("\nno consumers\n");
    return;
  }
  std::printf("\n%-8s  %-16s  %8s  %10s  %6s\n", "CONSUMER", "GROUP", "PID", "POSITION", "LEASES");
  for (const v1::ConsumerStats& consumer : stats.consumers()) {
    std::printf("%-8u  %-16s  %8d  %10llu  %6u\n", consumer.id(), consumer.group().c_str(),
                consumer.pid(), static_cast<unsigned long long>(consumer.position()),
                consumer.leases());
  }
}

void PrintBottleneck(const v1::PipelineStats& stats) {
  if (stats.bottleneck().empty()) return;
  if (stats.bottleneck() != "consumer") {
    std::printf("\nbottleneck: stage %s\n", stats.bottleneck().c_str());
  } else if (stats.consumers().empty()) {
    std::printf("\nbottleneck: no consumer is attached and the ring is full\n");
  } else {
    std::printf("\nbottleneck: the consumers, for whom batches wait\n");
  }
}

void Print(DaemonConnection& daemon, const v1::PipelineStats& before,
           const v1::PipelineStats& stats) {
  const Interval interval{before, stats};
  PrintTotals(interval);
  PrintStages(interval);
  PrintHelpers(stats);
  // Without a pipeline any more there is no spec, and what was asked for is told all the same.
  if (const auto pipeline = daemon.Get(stats.name()); pipeline.ok()) {
    for (const v1::Stage& stage : pipeline->spec().stage()) PrintDrawn(stage, stats);
  }
  PrintShared(stats);
  PrintConsumers(stats);
  PrintBottleneck(stats);
}

struct StatsArguments {
  std::string name;
  double interval_s = 0.5;
  bool follow = false;
  bool json = false;
};

// The snapshot that `to` is compared with: none where the stream has begun anew since, and its
// counters with it.
v1::PipelineStats Before(const v1::PipelineStats& from, const v1::PipelineStats& to) {
  return to.running_ns() < from.running_ns() || to.steps() < from.steps() || to.rows() < from.rows()
             ? v1::PipelineStats()
             : from;
}

absl::Status Follow(DaemonConnection& daemon, const StatsArguments& arguments) {
  v1::WatchStatsRequest request;
  request.set_name(arguments.name);
  request.set_interval_ms(std::max(50, static_cast<int>(arguments.interval_s * 1000)));
  v1::PipelineStats before;
  return daemon.WatchStats(request, [&](const v1::PipelineStats& stats) {
    if (arguments.json) return PrintJson(stats).ok() && std::fflush(stdout) == 0;
    if (!before.name().empty()) {
      Print(daemon, Before(before, stats), stats);
      std::printf("\n");
      if (std::fflush(stdout) != 0) return false;  // CommandLine says so
    }
    before = stats;
    return true;
  });
}

absl::Status Stats(const std::string& socket, const StatsArguments& arguments) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  if (arguments.follow) return Follow(*daemon, arguments);
  if (arguments.json) {
    const auto stats = daemon->Stats(arguments.name);
    return stats.ok() ? PrintJson(*stats) : stats.status();
  }
  v1::PipelineStats before;
  if (arguments.interval_s > 0) {
    const auto first = daemon->Stats(arguments.name);
    if (!first.ok()) return first.status();
    before = *first;
    std::this_thread::sleep_for(std::chrono::duration<double>(arguments.interval_s));
  }
  const auto stats = daemon->Stats(arguments.name);
  if (!stats.ok()) return stats.status();
  Print(*daemon, Before(before, *stats), *stats);
  return absl::OkStatus();
}

}  // namespace

void AddStats(Command root, const std::string& socket) {
  Command command = root.AddCommand(
      "stats", "What a pipeline does, stage by stage, its consumers and its bottleneck");
  auto arguments = std::make_shared<StatsArguments>();
  command.Add("NAME", &arguments->name, "The pipeline").Required();
  command
      .Add("--interval", &arguments->interval_s,
           "Seconds over which rates and shares are taken; 0: since the creation")
      .InRange(0.0, 3600.0)
      .WithDefault();
  command.AddFlag("--follow", &arguments->follow, "Again after each interval, until it is stopped");
  command.AddFlag(
      "--json", &arguments->json,
      "A PipelineStats (control.proto) as JSON a line, with the shares of the last seconds");
  command.Runs([&socket, arguments] { return Report("stats", Stats(socket, *arguments)); });
}

}  // namespace penstock::ctl
