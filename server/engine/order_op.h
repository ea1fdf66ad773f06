// Order ops: the sequential front of a pipeline. They move references to records and decide nothing
// but their order.
//
// Threads: one at a time (the front's lock).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "server/engine/read_queue.h"
#include "server/engine/record.h"
#include "server/engine/record_store.h"

namespace penstock {

// What all order ops of one running pipeline share.
struct FrontContext {
  RecordStore& store;
  ReadQueue& reads;
  // The pass over the source to which the record pulled last belongs.
  uint64_t epoch = 0;
};

enum class Pulled {
  kSome,     // as many elements as were asked for
  kBlocked,  // fewer: a read is under way; pull again later for the rest
  kEnd,      // fewer: the end of this pass; sticky until Restart()
  kFailed,   // fewer: OrderOp::status() says why; sticky
};

// An element is one record before `batch`, and the records of one batch after it.
class OrderOp {
 public:
  virtual ~OrderOp() = default;

  // Appends up to `count` elements to `out` and adds their number to `*pulled`.
  virtual Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) = 0;

  // Begins another pass. Passes are numbered; a random op draws by (seed, epoch).
  virtual void Restart(uint64_t epoch) = 0;

  // Why Pull() returned kFailed.
  virtual absl::Status status() const = 0;
};

// An op with one input.
class ChainedOrderOp : public OrderOp {
 public:
  explicit ChainedOrderOp(std::unique_ptr<OrderOp> input) : input_(std::move(input)) {}
  void Restart(uint64_t epoch) override { input_->Restart(epoch); }
  absl::Status status() const override { return input_->status(); }

 protected:
  OrderOp& input() { return *input_; }

 private:
  std::unique_ptr<OrderOp> input_;
};

// Makes the op of one stage over its input (null for a source).
using OrderFactory =
    std::function<std::unique_ptr<OrderOp>(FrontContext& context, std::unique_ptr<OrderOp> input)>;

}  // namespace penstock
