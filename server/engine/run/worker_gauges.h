// What an executor's workers show of themselves: where their time goes, stage by stage, what their
// reads bring, what holds the stream back, and whether each of them still does something.
//
// Threads:  a worker writes to its own clock and pulse; everything else from any thread.
// Cost:     a line of memory a worker; Sample() copies one number a stage about once a second.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/pending_call.h"
#include "base/tick_clock.h"
#include "server/engine/compute/stage_clock.h"
#include "server/engine/run/executor_stats.h"

namespace penstock {

class WorkerGauges {
 public:
  // A line of memory a worker: it writes here whenever it turns to something else.
  struct alignas(64) Pulse {
    std::atomic<int32_t> thread{0};
    std::atomic<uint64_t> beats{0};
    std::atomic<bool> idle{false};
    CallSpot call;
  };

  WorkerGauges(const std::vector<std::string>& stage_names, int max_workers);

  StageClock& clock(int worker) { return *clocks_[worker]; }
  Pulse& pulse(int worker) { return pulses_[worker]; }
  const Pulse& pulse(int worker) const { return pulses_[worker]; }
  const TickScale& scale() const { return scale_; }

  // Ticks during which work was ready but no slot was free.
  void AddSlotWait(uint64_t ticks) { slot_wait_ticks_.fetch_add(ticks, std::memory_order_relaxed); }
  // What a read of that stage has brought, and the time that it took.
  void AddRead(int stage, uint64_t bytes, uint64_t ticks) {
    reads_[stage].bytes.fetch_add(bytes, std::memory_order_relaxed);
    reads_[stage].ticks.fetch_add(ticks, std::memory_order_relaxed);
    bytes_read_.fetch_add(bytes, std::memory_order_relaxed);
  }
  // Called often; takes a sample when the last one is about a second old.
  void Sample();

  // Fills in the times, what was read, the bottleneck, and a row for each stage. REQUIRES:
  // `workers` is there.
  void Fill(ExecutorStats* stats) const;
  // Of the first `workers`. Takes no lock that a worker may hold.
  std::vector<WorkerPulse> Pulses(int workers) const;
  // Of all workers that there ever were: the calls to a disk that are under way and have taken so
  // long.
  std::vector<CallUnderWay> CallsUnderWay(uint64_t ns_min) const;

 private:
  // What the reads of a source have brought, and the time that they took.
  struct SourceReads {
    std::atomic<uint64_t> bytes{0};
    std::atomic<uint64_t> ticks{0};
  };
  // Totals at one moment.
  struct Totals {
    uint64_t ticks = 0;
    uint64_t slot_wait_ticks = 0;
    std::vector<uint64_t> stage_ticks;
  };
  Totals Now() const;
  // What held the stream back between two moments: the consumers (IsHeldByConsumers), or the
  // busiest stage.
  std::string Bottleneck(const Totals& from, const Totals& to, int workers) const;

  const TickScale scale_;
  const std::vector<std::string> stage_names_;
  std::vector<std::unique_ptr<StageClock>> clocks_;  // one a worker
  std::vector<Pulse> pulses_;                        // one a worker
  std::vector<SourceReads> reads_;                   // one a stage
  std::atomic<uint64_t> bytes_read_{0};
  std::atomic<uint64_t> slot_wait_ticks_{0};
  mutable std::mutex mutex_;
  Totals older_;  // under mutex_: what the bottleneck is counted from
  Totals newer_;  // under mutex_
};

}  // namespace penstock
