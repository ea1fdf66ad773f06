// One run of a pipeline: its plan from a position on, into a ring of its own. A pipeline has one that
// its consumers share, and a small one for each consumer that is catching up.
//
// Threads:  safe from any thread; Start() once.
// Owns:     the ring until the last reference is gone (a consumer's session keeps one), and the
//           executor until Stop().
// Cost:     Create() allocates the ring: it may take a second for a large one.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ring/split_log.h"
#include "ring/writer.h"
#include "server/engine/damage_log.h"
#include "server/engine/executor.h"
#include "server/engine/plan.h"
#include "server/service/device_ring_sink.h"
#include "server/service/ring_sink.h"

namespace penstock {

struct StreamOptions {
  std::string name;  // the pipeline's
  uint32_t slots = 3;
  ExecutorOptions executor;                   // its `start` is where the stream begins
  std::string start_cursor;                   // of that position, if it is known
  std::shared_ptr<ring::SplitLog> split_log;  // may be null
};

class Stream {
 public:
  static absl::StatusOr<std::shared_ptr<Stream>> Create(std::shared_ptr<const Plan> plan,
                                                        const StreamOptions& options);
  ~Stream() { Stop(absl::CancelledError("the pipeline is gone")); }

  void Start();
  // Ends production; consumers get `reason` after the batches that were ready, unless the stream had
  // ended before.
  void Stop(const absl::Status& reason);

  ring::Writer& writer() const { return sink_->writer(); }
  // The part of the ring that lies on a device; null where none does.
  const DeviceRing* device() const {
    return device_sink_ == nullptr ? nullptr : &device_sink_->device();
  }
  // How it ended by itself; nullopt while it goes on.
  std::optional<absl::Status> outcome() const { return sink_->outcome(); }
  // Nothing after Stop().
  std::optional<ExecutorStats> Snapshot() const;
  std::vector<SkippedPlace> Skipped() const;
  // None after Stop().
  std::vector<WorkerPulse> Pulses() const;

 private:
  Stream(std::unique_ptr<RingSink> sink, std::shared_ptr<ring::SplitLog> split_log)
      : split_log_(std::move(split_log)), sink_(std::move(sink)) {}
  absl::Status AddDevice(const Plan& plan, const StreamOptions& options);
  BatchSink& producers_sink() {
    if (device_sink_ != nullptr) return *device_sink_;
    return *sink_;
  }

  const std::shared_ptr<ring::SplitLog> split_log_;
  const std::unique_ptr<RingSink> sink_;
  std::unique_ptr<DeviceRingSink>
      device_sink_;  // after Create(): constant; it reads the ring's slots
  mutable std::mutex mutex_;
  std::unique_ptr<Executor> executor_;  // under mutex_; null after Stop()
};

}  // namespace penstock
