#include "server/engine/run/worker_gauges.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

constexpr uint64_t kSampleTicks = uint64_t{1} << 31;  // about a second

}  // namespace

WorkerGauges::WorkerGauges(const std::vector<std::string>& stage_names, int max_workers)
    : stage_names_(stage_names), pulses_(max_workers), reads_(stage_names.size()) {
  for (int i = 0; i < max_workers; ++i)
    clocks_.push_back(std::make_unique<StageClock>(stage_names_.size()));
  older_ = newer_ = Now();
}

void WorkerGauges::Sample() {
  const uint64_t now = Ticks();
  std::lock_guard<std::mutex> lock(mutex_);
  if (now - newer_.ticks < kSampleTicks) return;
  older_ = std::exchange(newer_, Now());
}

WorkerGauges::Totals WorkerGauges::Now() const {
  Totals totals{Ticks(), slot_wait_ticks_.load(std::memory_order_relaxed),
                std::vector<uint64_t>(stage_names_.size())};
  for (const std::unique_ptr<StageClock>& clock : clocks_) {
    for (size_t stage = 0; stage < totals.stage_ticks.size(); ++stage)
      totals.stage_ticks[stage] += clock->ticks(static_cast<int>(stage));
  }
  return totals;
}

std::string WorkerGauges::Bottleneck(const Totals& from, const Totals& to, int workers) const {
  size_t busiest = 0;
  uint64_t most = 0, sum = 0;
  for (size_t stage = 0; stage < to.stage_ticks.size(); ++stage) {
    const uint64_t ticks = to.stage_ticks[stage] - from.stage_ticks[stage];
    sum += ticks;
    if (ticks > most) {
      most = ticks;
      busiest = stage;
    }
  }
  const double passed = std::max<double>(to.ticks - from.ticks, 1);
  const double full = (to.slot_wait_ticks - from.slot_wait_ticks) / passed;
  const double busy = std::min(1.0, sum / passed / std::max(workers, 1));
  return IsHeldByConsumers(full, busy) ? "consumer" : stage_names_[busiest];
}

void WorkerGauges::Fill(ExecutorStats* stats) const {
  stats->slot_wait_ns = scale_.ToNanos(slot_wait_ticks_.load(std::memory_order_relaxed));
  stats->running_ns = scale_.elapsed_ns();
  stats->bytes_read = bytes_read_.load(std::memory_order_relaxed);
  for (size_t stage = 0; stage < stage_names_.size(); ++stage) {
    StageStats& row = stats->stages.emplace_back();
    row.name = stage_names_[stage];
    uint64_t ticks = 0;
    for (const std::unique_ptr<StageClock>& clock : clocks_) {
      ticks += clock->ticks(static_cast<int>(stage));
      row.elements += clock->elements(static_cast<int>(stage));
    }
    row.busy_ns = scale_.ToNanos(ticks);
    row.read_bytes = reads_[stage].bytes.load(std::memory_order_relaxed);
    row.read_ns = scale_.ToNanos(reads_[stage].ticks.load(std::memory_order_relaxed));
  }
  const Totals now = Now();
  std::lock_guard<std::mutex> lock(mutex_);
  stats->bottleneck = Bottleneck(older_, now, stats->workers);
}

std::vector<WorkerPulse> WorkerGauges::Pulses(int workers) const {
  std::vector<WorkerPulse> pulses;
  for (int i = 0; i < workers; ++i) {
    WorkerPulse& out = pulses.emplace_back();
    out.thread = pulses_[i].thread.load(std::memory_order_relaxed);
    out.beats = pulses_[i].beats.load(std::memory_order_relaxed);
    out.idle = pulses_[i].idle.load(std::memory_order_relaxed);
    // Within a block, each stage counts.
    for (const uint64_t ticks : clocks_[i]->AllTicks()) out.beats += ticks;
  }
  return pulses;
}

std::vector<CallUnderWay> WorkerGauges::CallsUnderWay(uint64_t ns_min) const {
  std::vector<CallUnderWay> calls;
  for (const Pulse& pulse : pulses_) {
    std::optional<CallSeen> seen = pulse.call.Look();
    if (!seen) continue;
    const uint64_t ns = scale_.ToNanos(seen->ticks);
    if (ns >= ns_min)
      calls.push_back(
          {seen->kind, std::move(seen->doing), std::move(seen->path), seen->offset, ns});
  }
  return calls;
}

}  // namespace penstock
