// Where finished batches go. The engine fills spans of a sink; the service hands out slots of a
// ring, a test hands out vectors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/signature.h"

namespace penstock {

// How the values of one tensor lie in a slot: the kinds of ring/layout.h.
enum class TensorKind : uint8_t { kDense = 0, kRagged = 1, kString = 2, kSparse = 3 };

// One tensor of every batch. `type.shape` is that of a full batch: where `batched`, its first axis
// counts rows and a shorter batch fills its first rows; where not (a pipeline without `batch`), a
// step is one element. An axis that only the data tells is kUnknownSize.
struct BatchTensor {
  std::string name;
  TensorType type;
  bool batched = true;
  TensorKind kind = TensorKind::kDense;
  int ragged_rank = 0;  // ragged axes, from the second one on
  // One element, with which smaller rows are filled up ("" is zero, or the empty string); nothing
  // where they are not.
  std::optional<std::string> padding = std::nullopt;

  // Whether every full batch has the same size: then its place in a slot is always the same.
  bool fixed() const { return kind == TensorKind::kDense && NumBytes(type).has_value(); }
};

class BatchSink;

// Memory for one step, claimed from the sink.
struct ClaimedSlot {
  int slot = -1;
  // One for each tensor, null for those that are not fixed; aligned to 64 bytes and followed by at
  // least 64 bytes that may be overwritten.
  std::vector<uint8_t*> tensors;
  // Memory for all tensors that are not fixed, aligned to 64 bytes: the engine lays their parts
  // there one after another, each aligned to 64 bytes and followed by 64 spare ones.
  uint8_t* variable = nullptr;
  uint64_t variable_bytes = 0;
  // Whose MakeRoom() is called before variable memory is written; null: it need not be.
  BatchSink* grows = nullptr;
};

// The parts of one tensor that is not fixed, in the order of ring/layout.h; offsets are counted
// from ClaimedSlot::variable. Unused parts are zero.
struct TensorExtent {
  struct Part {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  Part parts[4];
};

struct StepInfo {
  uint64_t step = 0;
  uint64_t epoch = 0;  // of its first row
  uint32_t rows = 0;   // valid rows; 1 where the pipeline has no `batch`
  // Rows that the tensors have: more than `rows` where a last batch is filled up with rows that are
  // no elements.
  uint32_t shape_rows = 0;
  // The position behind this step: with it a pipeline goes on with the next one.
  std::string cursor;
  // One for each tensor that is not fixed, in their order.
  std::vector<TensorExtent> extents;
};

// Threads: TryClaim, Publish and Finish are called by one thread at a time, in step order;
// everything else by any thread.
class BatchSink {
 public:
  virtual ~BatchSink() = default;

  // Claims memory for the next step; false when no slot is free.
  virtual bool TryClaim(ClaimedSlot* slot) = 0;

  // The first `bytes` of a claimed slot's variable memory are about to be written. From any thread,
  // one at a time for each slot.
  virtual void MakeRoom(int /*slot*/, uint64_t /*bytes*/) {}

  // Makes a claimed and filled step visible. Steps are published in order without gaps; up to the
  // number of slots are claimed at a time.
  virtual void Publish(const ClaimedSlot& slot, const StepInfo& info) = 0;

  // No further step follows: the stream ended (OK) or failed. Called once, after the last
  // Publish().
  virtual void Finish(const absl::Status& status) = 0;

  // Returns when a slot may have become free, at Interrupt(), or after `timeout`.
  virtual void WaitForSlot(absl::Duration timeout) = 0;
  virtual void Interrupt() = 0;

  // A worker has ended a piece of work and begins another one: what the sink has left to such a
  // moment is done.
  virtual void PassBy() {}
  // A worker is about to sleep elsewhere than in WaitForSlot(), or to end: as PassBy(), and the
  // sink counts on it no longer.
  virtual void Rest() {}
};

}  // namespace penstock
