#include "server/service/http/metrics.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/release.h"

namespace penstock {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

// All series of one name stand together, behind its help and type.
class Family {
 public:
  Family(std::string* out, std::string name, const std::string& type, const std::string& help)
      : out_(out), name_(std::move(name)) {
    absl::StrAppend(out_, "# HELP ", name_, " ", help, "\n# TYPE ", name_, " ", type, "\n");
  }

  template <typename Value>
  void Add(const Labels& labels, Value value) {
    absl::StrAppend(out_, name_);
    for (size_t i = 0; i < labels.size(); ++i) {
      absl::StrAppend(
          out_, i == 0 ? "{" : ",", labels[i].first, "=\"",
          absl::StrReplaceAll(labels[i].second, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
          "\"");
    }
    if constexpr (std::is_floating_point_v<Value>) {
      char text[32];
      snprintf(text, sizeof(text), "%.17g", value);
      absl::StrAppend(out_, labels.empty() ? "" : "}", " ", text, "\n");
    } else {
      absl::StrAppend(out_, labels.empty() ? "" : "}", " ", value, "\n");
    }
  }

 private:
  std::string* const out_;
  const std::string name_;
};

double Seconds(uint64_t ns) { return 1e-9 * static_cast<double>(ns); }

struct Group {
  uint64_t consumers = 0;
  uint64_t leases = 0;
  uint64_t lag_max = 0;
};

std::map<std::string, Group> GroupsOf(const v1::PipelineStats& stats) {
  std::map<std::string, Group> groups;
  for (const v1::ConsumerStats& consumer : stats.consumers()) {
    Group& group = groups[consumer.group()];
    // Who was sent away, or has left, may hold some still, and waits for nothing.
    group.leases += consumer.leases();
    if (consumer.detached() || consumer.left()) continue;
    ++group.consumers;
    group.lag_max = std::max<uint64_t>(group.lag_max, consumer.lag());
  }
  return groups;
}

}  // namespace

ProcessFigures ReadProcessFigures() {
  ProcessFigures figures;
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t name_end = text.rfind(") ");
  if (name_end == text.npos) return figures;
  std::istringstream rest(text.substr(name_end + 2));
  std::vector<std::string> fields{std::istream_iterator<std::string>(rest), {}};
  if (fields.size() < 22) return figures;
  // proc(5) counts from 1, and the state, here the first one, is the third.
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  figures.cpu_seconds = (std::stod(fields[11]) + std::stod(fields[12])) / ticks;
  figures.resident_bytes = std::stoull(fields[21]) * sysconf(_SC_PAGESIZE);
  timespec boot, wall;
  clock_gettime(CLOCK_BOOTTIME, &boot);
  clock_gettime(CLOCK_REALTIME, &wall);
  figures.start_time_s =
      static_cast<double>(wall.tv_sec - boot.tv_sec) + std::stod(fields[19]) / ticks;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end; entry != end;
       entry.increment(error)) {
    ++figures.open_descriptors;
  }
  return figures;
}

std::string MetricsText(const std::vector<v1::PipelineStats>& pipelines, size_t returning,
                        const Refusals& refusals, const SharedMaps::Use& maps,
                        const ProcessFigures& process) {
  std::string out;
  const auto gauge = [&](const char* name, const char* help) {
    return Family(&out, name, "gauge", help);
  };
  const auto counter = [&](const char* name, const char* help) {
    return Family(&out, name, "counter", help);
  };
  // One value for each pipeline.
  const auto each = [&](Family family, auto value) {
    for (const v1::PipelineStats& stats : pipelines)
      family.Add({{"pipeline", stats.name()}}, value(stats));
  };
  gauge("penstock_build_info", "A 1, and the release in its label.")
      .Add({{"version", kRelease}}, 1);
  gauge("penstock_pipelines", "Pipelines of this daemon.").Add({}, pipelines.size());
  gauge("penstock_pipelines_returning",
        "Pipelines of the daemon before this one that have not come back yet.")
      .Add({}, returning);
  {
    Family family =
        counter("penstock_refusals_total", "Connections and calls that were turned away.");
    family.Add({{"reason", "no rule"}}, refusals.no_rule);
    family.Add({{"reason", "no right"}}, refusals.no_right);
    family.Add({{"reason", "too often"}}, refusals.too_often);
    family.Add({{"reason", "no descriptors"}}, refusals.no_descriptors);
    family.Add({{"reason", "no place"}}, refusals.no_place);
  }
  gauge("penstock_mapped_files", "Files of small records that stay mapped.").Add({}, maps.files);
  gauge("penstock_mapped_bytes", "Bytes of the files that stay mapped.").Add({}, maps.bytes);

  {
    Family family = gauge("penstock_pipeline_state", "1 for the state that a pipeline is in.");
    for (const v1::PipelineStats& stats : pipelines) {
      for (const auto state : {v1::PIPELINE_STATE_RUNNING, v1::PIPELINE_STATE_PAUSED,
                               v1::PIPELINE_STATE_FINISHED, v1::PIPELINE_STATE_FAILED}) {
        family.Add({{"pipeline", stats.name()},
                    {"state", absl::AsciiStrToLower(absl::StripPrefix(v1::PipelineState_Name(state),
                                                                      "PIPELINE_STATE_"))}},
                   stats.state() == state ? 1 : 0);
      }
    }
  }
  each(gauge("penstock_pipeline_resting",
             "1 while nobody reads it and it has given its memory and threads back."),
       [](const auto& stats) { return stats.resting() ? 1 : 0; });
  each(counter("penstock_pipeline_steps_total", "Steps (batches) made since the stream began."),
       [](const auto& stats) { return stats.made_steps(); });
  each(counter("penstock_pipeline_rows_total", "Rows of these steps."),
       [](const auto& stats) { return stats.rows(); });
  each(counter("penstock_pipeline_records_total", "Records that left the sources."),
       [](const auto& stats) { return stats.records(); });
  each(counter("penstock_pipeline_read_bytes_total", "Bytes read from files."),
       [](const auto& stats) { return stats.bytes_read(); });
  each(
      counter("penstock_pipeline_skipped_total", "Damaged places and failed elements passed over."),
      [](const auto& stats) { return stats.skipped(); });
  each(counter("penstock_pipeline_slot_wait_seconds_total",
               "Time in which work was ready and every slot was in use: consumers are slower."),
       [](const auto& stats) { return Seconds(stats.slot_wait_ns()); });
  each(gauge("penstock_pipeline_oldest_read_seconds",
             "Age of the read of a file that has been under way longest; 0 below one second."),
       [](const auto& stats) { return stats.oldest_read().seconds(); });
  each(
      gauge("penstock_pipeline_oldest_write_seconds",
            "Age of the write to a kept file that has been under way longest; 0 below one second."),
      [](const auto& stats) { return stats.oldest_write().seconds(); });
  each(gauge("penstock_pipeline_oldest_work_seconds",
             "Age of the rows at another process that are away longest; 0 below one second."),
       [](const auto& stats) { return stats.oldest_work().seconds(); });
  each(gauge("penstock_pipeline_tasks_away", "Tasks whose work others do now."),
       [](const auto& stats) { return stats.tasks_away(); });
  const auto each_remote = [&](Family family, auto value) {
    for (const v1::PipelineStats& stats : pipelines) {
      if (stats.has_remote()) family.Add({{"pipeline", stats.name()}}, value(stats.remote()));
    }
  };
  each_remote(counter("penstock_pipeline_fetched_bytes_total",
                      "Bytes of files at addresses that came by the network."),
              [](const auto& remote) { return remote.bytes(); });
  each_remote(counter("penstock_pipeline_fetch_requests_total",
                      "Requests for ranges of such files; most providers ask money for each."),
              [](const auto& remote) { return remote.requests(); });
  each_remote(counter("penstock_pipeline_fetch_retries_total", "Of those: sent again."),
              [](const auto& remote) { return remote.retries(); });
  each_remote(counter("penstock_pipeline_fetch_hedges_total",
                      "Of those: second ones for bytes that were slow to begin."),
              [](const auto& remote) { return remote.hedges(); });
  each_remote(counter("penstock_pipeline_fetch_hits_total",
                      "Reads whose bytes were in memory when they were looked at."),
              [](const auto& remote) { return remote.hits(); });
  each_remote(counter("penstock_pipeline_fetch_misses_total", "Reads that were waited for."),
              [](const auto& remote) { return remote.misses(); });
  each_remote(counter("penstock_pipeline_fetch_cached_bytes_total",
                      "Bytes that came out of the cache folder instead of the network."),
              [](const auto& remote) { return remote.cached_bytes(); });
  each_remote(gauge("penstock_pipeline_fetch_waiting", "Reads that are waited for now."),
              [](const auto& remote) { return remote.waiting(); });
  for (const v1::PipelineStats& stats : pipelines) {
    if (!stats.has_remote()) continue;
    // The same for all of them.
    const v1::RemoteStats& remote = stats.remote();
    gauge("penstock_fetch_under_way", "Requests for ranges under way, of all pipelines.")
        .Add({}, remote.under_way());
    gauge("penstock_fetch_request_limit", "How many may be at present.")
        .Add({}, remote.request_limit());
    gauge("penstock_fetch_queued", "Ranges that wait for a request.").Add({}, remote.queued());
    gauge("penstock_fetch_memory_bytes", "Memory of what was fetched and not read yet.")
        .Add({}, remote.memory_bytes());
    gauge("penstock_fetch_first_byte_seconds", "How long a first byte takes, the median.")
        .Add({}, 1e-3 * remote.first_byte_ms());
    break;
  }
  each(gauge("penstock_pipeline_work_bytes", "Memory of what it computes and keeps."),
       [](const auto& stats) { return stats.work_bytes(); });
  each(gauge("penstock_pipeline_work_limit_bytes", "The most that this may take; 0: no limit."),
       [](const auto& stats) { return stats.max_work_bytes(); });
  each(counter("penstock_pipeline_running_seconds_total", "Time since the pipeline began."),
       [](const auto& stats) { return Seconds(stats.running_ns()); });
  each(gauge("penstock_pipeline_epoch", "The pass over the source, from 0."),
       [](const auto& stats) { return stats.epoch(); });
  each(gauge("penstock_pipeline_workers", "Worker threads."),
       [](const auto& stats) { return stats.workers(); });
  each(gauge("penstock_pipeline_ring_slots", "Slots of the ring."),
       [](const auto& stats) { return stats.slots(); });
  each(
      gauge("penstock_pipeline_ring_used_slots", "Slots of the ring that were found to be enough."),
      [](const auto& stats) { return stats.used_slots(); });
  each(gauge("penstock_pipeline_ring_bytes", "Memory of the ring's slots."),
       [](const auto& stats) { return stats.ring_bytes(); });
  each(
      gauge("penstock_pipeline_workers_busy_ratio", "Of the workers' time, at work; last seconds."),
      [](const auto& stats) { return stats.analysis().busy(); });
  each(gauge("penstock_pipeline_workers_blocked_ratio",
             "Of the workers' time, ready but without a free slot; last seconds."),
       [](const auto& stats) { return stats.analysis().blocked(); });
  each(gauge("penstock_pipeline_workers_starved_ratio",
             "Of the workers' time, waiting for files or the order; last seconds."),
       [](const auto& stats) { return stats.analysis().starved(); });

  {
    Family family = counter("penstock_stage_busy_seconds_total", "Workers' time inside a stage.");
    for (const v1::PipelineStats& stats : pipelines) {
      for (const v1::StageStats& stage : stats.stages())
        family.Add({{"pipeline", stats.name()}, {"stage", stage.name()}}, Seconds(stage.busy_ns()));
    }
  }
  {
    Family family = counter("penstock_stage_away_seconds_total",
                            "Time of tasks of a stage whose work others did.");
    for (const v1::PipelineStats& stats : pipelines) {
      for (const v1::StageStats& stage : stats.stages()) {
        if (stage.away_ns() > 0)
          family.Add({{"pipeline", stats.name()}, {"stage", stage.name()}},
                     Seconds(stage.away_ns()));
      }
    }
  }
  {
    Family family = counter("penstock_stage_elements_total", "Elements that left a stage.");
    for (const v1::PipelineStats& stats : pipelines) {
      for (const v1::StageStats& stage : stats.stages())
        family.Add({{"pipeline", stats.name()}, {"stage", stage.name()}}, stage.elements());
    }
  }
  const auto each_python = [&](Family family, auto value) {
    for (const v1::PipelineStats& stats : pipelines) {
      for (const v1::StageStats& stage : stats.stages()) {
        if (stage.has_python_workers())
          family.Add({{"pipeline", stats.name()}, {"stage", stage.name()}},
                     value(stage.python_workers()));
      }
    }
  };
  each_python(gauge("penstock_stage_python_workers", "Processes that compute a stage's rows."),
              [](const auto& python) { return python.workers(); });
  each_python(counter("penstock_stage_python_busy_seconds_total",
                      "Time that the processes of a stage were at rows."),
              [](const auto& python) { return Seconds(python.busy_ns()); });
  each_python(gauge("penstock_stage_python_oldest_row_seconds",
                    "How long the oldest row of a stage's processes has taken so far."),
              [](const auto& python) { return python.oldest_row_seconds(); });
  each_python(counter("penstock_stage_python_started_total",
                      "Processes that were started to compute a stage's rows."),
              [](const auto& python) { return python.started(); });
  each_python(counter("penstock_stage_python_deaths_total",
                      "Processes of a stage that ended at a row, or were ended by the system."),
              [](const auto& python) { return python.deaths(); });
  each_python(gauge("penstock_stage_python_bytes",
                    "Memory that the processes of a stage have for themselves."),
              [](const auto& python) { return python.memory_bytes(); });
  const auto each_kept = [&](Family family, auto value) {
    for (const v1::PipelineStats& stats : pipelines) {
      for (const v1::StageStats& stage : stats.stages()) {
        if (stage.has_kept())
          family.Add({{"pipeline", stats.name()}, {"stage", stage.name()}}, value(stage.kept()));
      }
    }
  };
  each_kept(gauge("penstock_stage_kept_elements", "Elements that a cache keeps."),
            [](const auto& kept) { return kept.elements(); });
  each_kept(gauge("penstock_stage_kept_bytes", "Bytes that a cache keeps."),
            [](const auto& kept) { return kept.bytes(); });
  each_kept(counter("penstock_stage_kept_hits_total", "Elements that were taken from a cache."),
            [](const auto& kept) { return kept.hits(); });
  {
    Family family = gauge("penstock_stage_kept_state", "1 for the state that a cache is in.");
    for (const v1::PipelineStats& stats : pipelines) {
      for (const v1::StageStats& stage : stats.stages()) {
        if (!stage.has_kept()) continue;
        family.Add(
            {{"pipeline", stats.name()}, {"stage", stage.name()}, {"state", stage.kept().state()}},
            1);
      }
    }
  }
  const auto each_packed = [&](Family family, auto value) {
    for (const v1::PipelineStats& stats : pipelines) {
      for (const v1::StageStats& stage : stats.stages()) {
        if (stage.has_packed())
          family.Add({{"pipeline", stats.name()}, {"stage", stage.name()}}, value(stage.packed()));
      }
    }
  };
  each_packed(counter("penstock_stage_packed_sequences_total", "Sequences that a stage packed."),
              [](const auto& packed) { return packed.sequences(); });
  each_packed(counter("penstock_stage_packed_tokens_total", "Tokens in packed sequences."),
              [](const auto& packed) { return packed.tokens(); });
  each_packed(counter("penstock_stage_packed_padding_total", "Padding in packed sequences."),
              [](const auto& packed) { return packed.padding(); });
  const auto each_shared = [&](Family family, auto value) {
    for (const v1::PipelineStats& stats : pipelines) {
      for (const v1::SharedPrefixStats& prefix : stats.shared_prefix())
        family.Add({{"pipeline", stats.name()}, {"stage", prefix.stage()}}, value(prefix));
    }
  };
  each_shared(counter("penstock_shared_prefix_hits_total",
                      "Elements of common work that were taken from another pipeline."),
              [](const auto& prefix) { return prefix.hits(); });
  each_shared(counter("penstock_shared_prefix_misses_total",
                      "Elements of common work that were computed here."),
              [](const auto& prefix) { return prefix.misses(); });
  each_shared(gauge("penstock_shared_prefix_bytes",
                    "Bytes of common work that wait for a pipeline, of all that share it."),
              [](const auto& prefix) { return prefix.bytes(); });
  const auto each_helper = [&](Family family, auto value) {
    for (const v1::PipelineStats& stats : pipelines) {
      for (const v1::HelperStats& helper : stats.helpers())
        family.Add({{"pipeline", stats.name()}, {"helper", helper.address()}}, value(helper));
    }
  };
  each_helper(gauge("penstock_helper_ready", "1 where a helper on another host makes steps."),
              [](const auto& helper) { return helper.state() == "ready" ? 1 : 0; });
  each_helper(counter("penstock_helper_steps_total", "Steps that a helper has made."),
              [](const auto& helper) { return helper.steps(); });
  each_helper(counter("penstock_helper_bytes_total", "Bytes of the steps that a helper has made."),
              [](const auto& helper) { return helper.bytes(); });
  each_helper(counter("penstock_helper_given_back_total",
                      "Steps that others made, since a helper was late or gone."),
              [](const auto& helper) { return helper.given_back(); });
  each_helper(counter("penstock_helper_left_out_total", "How often a helper was left out."),
              [](const auto& helper) { return helper.left_out(); });
  const auto each_group = [&](Family family, auto value) {
    for (const v1::PipelineStats& stats : pipelines) {
      for (const auto& [name, group] : GroupsOf(stats))
        family.Add({{"pipeline", stats.name()}, {"group", name}}, value(group));
    }
  };
  each_group(gauge("penstock_group_consumers", "Attached consumers."),
             [](const Group& group) { return group.consumers; });
  each_group(gauge("penstock_group_leases", "Steps that consumers hold."),
             [](const Group& group) { return group.leases; });
  each_group(gauge("penstock_group_lag_steps", "Steps that are ready for the slowest consumer."),
             [](const Group& group) { return group.lag_max; });

  counter("process_cpu_seconds_total", "Processor time of the daemon.")
      .Add({}, process.cpu_seconds);
  gauge("process_resident_memory_bytes", "Resident memory, shared rings and mapped files included.")
      .Add({}, process.resident_bytes);
  gauge("process_open_fds", "Open descriptors.").Add({}, process.open_descriptors);
  gauge("process_start_time_seconds", "When the daemon started, since 1970.")
      .Add({}, process.start_time_s);
  return out;
}

}  // namespace penstock
