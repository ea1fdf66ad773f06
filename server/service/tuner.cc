#include "server/service/tuner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr std::chrono::seconds kBetweenLooks(1);

}  // namespace

Tuner::Tuner(const PipelineTable& table, const Monitor& monitor, int most, double processors)
    : table_(table), monitor_(monitor), most_(most), processors_(processors) {
  thread_ = std::thread([this] { Run(); });
}

Tuner::~Tuner() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  stopped_changed_.notify_all();
  thread_.join();
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
    if (!pipeline->IsTuned()) continue;
    const std::string& name = pipeline->name();
    auto found = tuned_.find(name);
    if (found == tuned_.end() || found->second.pipeline.lock() != pipeline) {
      found = tuned_.insert_or_assign(name, Tuned{pipeline, Autotuner(most_, processors_)}).first;
    }
    Autotuner& tuner = found->second.tuner;
    const v1::PipelineStats stats = monitor_.Stats(*pipeline);
    if (!stats.has_analysis() || stats.workers() == 0) continue;
    const int workers = tuner.Look(stats, static_cast<int>(stats.workers()));
    v1::Autotune report;
    report.set_workers(static_cast<uint32_t>(workers));
    report.set_least_workers(1);
    report.set_most_workers(static_cast<uint32_t>(tuner.most()));
    report.set_reason(tuner.reason());
    report.set_changes(tuner.changes());
    report.set_processors(tuner.processors());
    const absl::Status status = pipeline->Tune(workers, std::move(report));
    if (!status.ok()) spdlog::warn("pipeline {}: {}", name, status.ToString());
  }
  std::erase_if(tuned_, [](const auto& entry) { return entry.second.pipeline.expired(); });
}

}  // namespace penstock
