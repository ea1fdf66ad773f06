// Numbers that a pipeline may be given while it runs, without effect on its batches: workers,
// slots, how far it reads ahead, and its budget of memory. By hand, or by the daemon where nobody
// has named them.
//
// Threads:  safe from any thread; Apply(), Undo() and Tune() one at a time, while no stream is made
//           (PipelineStreams::Lock).
// Owns:     the numbers. Streams are told of them, and have no others.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "penstock/v1/control.pb.h"
#include "penstock/v1/server.pb.h"
#include "ring/writer.h"
#include "server/service/pipeline/pipeline_basis.h"
#include "server/service/pipeline/user_quotas.h"
#include "server/service/stream/memory_budget.h"
#include "server/service/stream/stream.h"
#include "server/service/stream/tuning.h"

namespace penstock {

class PipelineNumbers {
 public:
  // `history`: what its changes name is taken.
  PipelineNumbers(const PipelineBasis& basis, const std::vector<v1::Change>& history);

  // Takes its workers out of what its owner may have (DaemonConfig.user_quota), before anything
  // runs: ResourceExhausted where they are not to be had. What comes back after a restart has what
  // it had.
  absl::Status TakeWorkers(bool returns);

  // InvalidArgument, or FailedPrecondition, for what cannot be had.
  absl::Status Check(const v1::Change& change) const;
  // What a change does to the streams that run, the shared one first. They are held.
  absl::Status Apply(const v1::Change& change, const std::vector<std::shared_ptr<Stream>>& streams);
  // The way back, of a change that is not taken: whoever chose the numbers, and though a limit of
  // memory may change slots that the change does not name.
  void Undo(const v1::Change& change, uint32_t slots_before,
            const std::vector<std::shared_ptr<Stream>>& streams);
  // Those of a change are the pipeline's from here on.
  void Take(const v1::Change& change);
  // Takes those that are the daemon's to choose; `report` is what autotune() says from now on.
  absl::Status Tune(const Tuning& wanted, v1::Autotune report,
                    const std::vector<std::shared_ptr<Stream>>& streams);

  // What a stream begins with.
  struct OfStream {
    int workers = 0;
    bool tries_fewer_slots = false;
    std::map<std::string, int64_t> read_ahead;
  };
  OfStream ForStream() const;
  uint32_t slots() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return slots_;
  }
  // With the pipeline's own limit.
  MemoryOwner Limited(MemoryOwner owner) const {
    owner.own_limit = memory_bytes_;
    return owner;
  }

  // As those of Pipeline.
  Tunes tunes() const;
  int DefaultWorkers() const;
  std::optional<int> NodeProcessors() const;
  // Of its owner's quota: those that it has, and of `wanted` those that it may have.
  int workers() const { return share_.workers(); }
  int MostWorkers(int wanted) const { return share_.Most(wanted); }
  // Slots that this ring, which all share, may have within all budgets.
  uint32_t MostSlots(const ring::Writer& writer) const;
  v1::Autotune autotune() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return autotune_;
  }
  // Puts them into a spec.
  void Describe(v1::PipelineSpec* spec) const;

 private:
  // Of so many those that the owner may have, where the daemon chooses.
  int Chosen(int workers) const;
  // What a slot takes at the most.
  uint64_t SlotCost() const;
  uint32_t SlotsWithin(uint64_t memory_bytes) const;
  // Nobody has named the number of slots, and it may change. REQUIRES: mutex_.
  bool DepthIsFree() const;

  const CheckedPipeline& checked_;
  const PipelineOptions& options_;
  const std::shared_ptr<std::atomic<uint64_t>> memory_bytes_ =
      std::make_shared<std::atomic<uint64_t>>(0);  // its own limit; 0: none
  WorkerShare share_;                              // changed while no stream is made

  mutable std::mutex mutex_;
  int workers_;     // under mutex_
  uint32_t slots_;  // under mutex_
  // Under mutex_: by the spec or an update, and not by the daemon.
  bool workers_are_chosen_;
  bool slots_are_chosen_;
  bool read_ahead_is_chosen_;
  std::map<std::string, int64_t> read_ahead_;  // under mutex_: as ExecutorOptions::read_ahead
  v1::Autotune autotune_;                      // under mutex_
};

}  // namespace penstock
