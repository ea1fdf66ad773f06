#include "server/service/tune/tuner.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/new_thread.h"
#include "ring/memory_limit.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr std::chrono::seconds kBetweenLooks(1);
constexpr char kSlots[] = "ring.slots";
// Of the memory that there is, what one source may ask the kernel to read ahead of a file. Several
// are read at a time; what the kernel keeps of them it may drop.
constexpr uint64_t kPartForReadAhead = 256;

int64_t MostReadAhead() {
  return static_cast<int64_t>(
      std::clamp<uint64_t>(ring::ReadUnpromisedMemory().bytes / kPartForReadAhead,
                           ReadAheadTuner::kLeast, kMaxReadAhead));
}

v1::TunedNumber* AddNumber(const std::string& name, int64_t value, int64_t least, int64_t most,
                           v1::Autotune* report) {
  v1::TunedNumber* number = report->add_number();
  number->set_name(name);
  number->set_value(value);
  number->set_least(least);
  number->set_most(most);
  return number;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tuner>> Tuner::Create(const PipelineTable& table,
                                                     const Monitor& monitor, double processors) {
  std::unique_ptr<Tuner> tuner(new Tuner(table, monitor, processors));
  absl::StatusOr<std::thread> thread =
      NewThread("autotune", [running = tuner.get()] { running->Run(); });
  if (!thread.ok()) return thread.status();
  tuner->thread_ = *std::move(thread);
  return tuner;
}

Tuner::~Tuner() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  stopped_changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Tuner::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_changed_.wait_for(lock, kBetweenLooks, [this] { return stopped_; })) {
    lock.unlock();
    LookAtAll();
    lock.lock();
  }
}

void Tuner::LookAtAll() {
  for (const auto& pipeline : table_.List()) {
    const Tunes tunes = pipeline->tunes();
    const std::string& name = pipeline->name();
    if (!tunes.any()) {
      // What was learnt is no longer true when they are given back.
      tuned_.erase(name);
      continue;
    }
    auto found = tuned_.find(name);
    if (found == tuned_.end() || found->second.pipeline.lock() != pipeline) {
      found = tuned_.insert_or_assign(name, Tuned{pipeline, NewAutotuner(*pipeline)}).first;
    }
    LookAt(*pipeline, tunes, &found->second);
  }
  std::erase_if(tuned_, [](const auto& entry) { return entry.second.pipeline.expired(); });
}

// A pipeline on a NUMA node has that node's processors only.
Autotuner Tuner::NewAutotuner(const Pipeline& pipeline) const {
  const std::optional<int> of_node = pipeline.NodeProcessors();
  return Autotuner(pipeline.DefaultWorkers(),
                   of_node ? std::min<double>(processors_, *of_node) : processors_);
}

void Tuner::LookAt(Pipeline& pipeline, const Tunes& tunes, Tuned* tuned) {
  const v1::PipelineStats stats = monitor_.Stats(pipeline);
  if (!stats.has_analysis() || stats.workers() == 0) return;
  Tuning wanted;
  v1::Autotune report;
  report.set_tunes_workers(tunes.workers);
  if (tunes.workers) {
    LookAtWorkers(pipeline, stats, &tuned->workers, &wanted, &report);
  } else {
    tuned->workers = NewAutotuner(pipeline);
  }
  if (const uint32_t most = tunes.slots ? pipeline.MostSlots() : 0; most > 0) {
    LookAtSlots(stats, most, &tuned->slots, &wanted, &report);
  } else {
    tuned->slots = DepthTuner();
    AddNumber(kSlots, stats.slots(), stats.slots(), stats.slots(), &report);
  }
  if (tunes.read_ahead) {
    LookAtSources(stats, &tuned->sources, &wanted, &report);
  } else {
    tuned->sources.clear();
    for (const v1::StageStats& stage : stats.stages()) {
      const int64_t bytes = stage.read_ahead_bytes();
      if (bytes > 0) AddNumber(stage.name(), bytes, bytes, bytes, &report);
    }
  }
  const absl::Status status = pipeline.Tune(wanted, std::move(report));
  if (!status.ok()) spdlog::warn("pipeline {}: {}", pipeline.name(), status.ToString());
}

void Tuner::LookAtWorkers(const Pipeline& pipeline, const v1::PipelineStats& stats,
                          Autotuner* tuner, Tuning* wanted, v1::Autotune* report) const {
  const auto now = static_cast<int>(stats.workers());
  // Its owner's quota has no effect on what is learnt.
  const int most = std::max(1, pipeline.MostWorkers(tuner->most()));
  const int workers = std::min(tuner->Look(stats, now), most);
  report->set_workers(static_cast<uint32_t>(workers));
  report->set_least_workers(1);
  report->set_most_workers(static_cast<uint32_t>(most));
  std::string reason = tuner->reason();
  if (most < tuner->most())
    absl::StrAppend(&reason, "; at most ", most, " by its owner's user_quota");
  report->set_reason(reason);
  report->set_changes(tuner->changes());
  report->set_processors(tuner->processors());
  if (workers == now) return;
  wanted->workers = workers;
  wanted->told.push_back(absl::StrCat("workers ", reason));
}

void Tuner::LookAtSlots(const v1::PipelineStats& stats, uint32_t most, DepthTuner* tuner,
                        Tuning* wanted, v1::Autotune* report) {
  const uint32_t slots = tuner->Look(stats, stats.slots(), most);
  v1::TunedNumber* number = AddNumber(kSlots, slots, 2, most, report);
  number->set_reason(tuner->reason());
  number->set_changes(tuner->changes());
  number->set_on(true);
  if (slots == stats.slots()) return;
  wanted->slots = slots;
  wanted->told.push_back(absl::StrCat("ring.slots ", tuner->reason()));
}

void Tuner::LookAtSources(const v1::PipelineStats& stats,
                          std::map<std::string, ReadAheadTuner>* tuners, Tuning* wanted,
                          v1::Autotune* report) {
  const int64_t most = MostReadAhead();
  std::map<std::string, int64_t> all;
  bool is_other = false;
  for (int i = 0; i < stats.stages_size(); ++i) {
    const v1::StageStats& source = stats.stages(i);
    if (source.read_ahead_bytes() == 0) continue;
    ReadAheadTuner& tuner = (*tuners)[source.name()];
    const int64_t bytes = tuner.Look(stats, i, source.read_ahead_bytes(), most);
    v1::TunedNumber* number = AddNumber(source.name(), bytes, ReadAheadTuner::kLeast, most, report);
    number->set_reason(tuner.reason());
    number->set_changes(tuner.changes());
    number->set_on(true);
    all[source.name()] = bytes;
    if (bytes == source.read_ahead_bytes()) continue;
    is_other = true;
    wanted->told.push_back(
        absl::StrCat("read_ahead_bytes of ", source.name(), " ", tuner.reason()));
  }
  if (is_other) wanted->read_ahead = std::move(all);
}

}  // namespace penstock
