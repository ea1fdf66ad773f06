// A ring as the place where an executor's batches go.
//
// Threads:  as BatchSink; outcome() and Close() from any thread.
// Owns:     the ring's writer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/numa_node.h"
#include "ring/writer.h"
#include "server/engine/run/step_count.h"
#include "server/engine/tensor/batch_sink.h"
#include "server/service/state/high_water.h"

namespace penstock {

absl::Status FromRing(const ring::Status& status);
ring::Status ToRing(const absl::Status& status);

// The last-level cache's, of which no more than a machine's own part is assumed.
uint64_t AssumedCacheBytes();
// The number of slots where the spec names none: as many as fit a third of the last-level cache, 4
// to 8, or 3 where four do not fit half of it. A ring that stays in the cache is up to twice as
// fast as one that does not.
uint32_t DefaultSlots(uint64_t slot_bytes, uint64_t cache_bytes = AssumedCacheBytes());

struct RingSinkOptions {
  std::string structure;  // of an element, as ring/layout.h says; empty for a flat dict
  // A slot's memory for all tensors that are not fixed, and whether its pages are taken as batches
  // need them; unused when all are.
  uint64_t variable_bytes = 0;
  bool variable_grows = false;
  uint64_t first_step = 0;              // the number of the first step that will be published
  StepCount count = {};                 // what consumers are told of the stream's length
  std::string_view first_cursor = {};   // that of the first step's position, if it is known
  ring::SplitLog* split_log = nullptr;  // may be null, else it outlives the sink
  bool slots_grow = true;               // whether more slots come as consumers do
  // As those of ring::SegmentOptions.
  std::function<ring::Status(uint64_t bytes)> reserve = nullptr;
  int numa_node = kNoNumaNode;
  // Which steps may be claimed; null: all.
  std::shared_ptr<HighWater> high_water = nullptr;
};

class RingSink : public BatchSink {
 public:
  // ResourceExhausted, with the figures, when the memory is not there.
  static absl::StatusOr<std::unique_ptr<RingSink>> Create(const std::string& pipeline,
                                                          const std::vector<BatchTensor>& tensors,
                                                          uint32_t slots,
                                                          RingSinkOptions options = {});

  bool TryClaim(ClaimedSlot* slot) override;
  void MakeRoom(int slot, uint64_t bytes) override { writer_->MakeRoom(slot, bytes); }
  void Publish(const ClaimedSlot& slot, const StepInfo& info) override;
  void Finish(const absl::Status& status) override;
  void WaitForSlot(absl::Duration timeout) override;
  void Interrupt() override;
  void PassBy() override { writer_->PassBy(); }
  void Rest() override { writer_->Rest(); }

  // Ends the stream for its consumers if it has not ended by itself. REQUIRES: no producer any
  // more.
  void Close(const absl::Status& status);

  // How the producer ended the stream; nullopt while it goes on.
  std::optional<absl::Status> outcome() const;

  ring::Writer& writer() { return *writer_; }
  const ring::Writer& writer() const { return *writer_; }

 private:
  RingSink(std::unique_ptr<ring::Writer> writer, std::string pipeline, int num_tensors,
           uint64_t first_step, std::shared_ptr<HighWater> high_water)
      : writer_(std::move(writer)),
        pipeline_(std::move(pipeline)),
        num_tensors_(num_tensors),
        high_water_(std::move(high_water)),
        next_(first_step) {}
  // Whether the next step may be claimed; asked once for each.
  bool MayClaimNext();

  const std::unique_ptr<ring::Writer> writer_;
  const std::string pipeline_;
  const int num_tensors_;
  const std::shared_ptr<HighWater> high_water_;  // may be null
  std::atomic<uint64_t> next_;                   // the step that is claimed next; the producer's
  bool may_claim_next_ = false;                  // the producer's
  std::atomic<bool> is_held_back_{false};        // it may not be claimed yet
  std::vector<ring::TensorExtent> extents_;      // the producer's, in Publish()
  mutable std::mutex mutex_;
  std::optional<absl::Status> outcome_;  // under mutex_
};

}  // namespace penstock
