// Order ops: the sequential front of a pipeline. They move references to records and decide nothing
// but their order.
//
// Threads: one at a time (the front's lock).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/row_identity.h"
#include "server/engine/order/position.h"
#include "server/engine/read/damage_log.h"
#include "server/engine/read/file_table.h"
#include "server/engine/read/read_queue.h"
#include "server/engine/read/record.h"
#include "server/engine/read/record_store.h"

namespace penstock {

class Errands;
class StageClock;
struct KeptGauge;
struct OrderNode;
struct PackGauge;
struct SectionTask;
class SectionsAhead;
using SectionQueue = WorkQueue<SectionTask>;

// What all order ops of one running pipeline share.
struct FrontContext {
  FileTable& files;
  RecordStore& store;
  ReadQueue& reads;
  SectionQueue& sections;
  DamageLog& damage;
  // Set when nobody wants anything any more.
  const std::atomic<bool>& cancelled;
  // What all sections, those of nested datasets too, share of the memory for what is ahead.
  SectionsAhead& ahead;
  // Whose time and elements are counted: it changes with the worker that runs the front.
  StageClock* const& clock;
  // Of a nested dataset: the file of the element that it is made of, of a window's first, and the
  // pass that this belongs to.
  bool nested = false;
  uint32_t element_file = 0;
  uint64_t element_epoch = 0;
  // The same, of all that stand around each other: which dataset it is, by the paths of those
  // elements; 0 outside of any, and where nothing needs it.
  uint64_t scope = 0;
  // While Restart() is called there: which pass of the `repeat`s behind the op begins.
  uint64_t scope_pass = 0;
  // Of a nested dataset that is made of several elements (window): those, owned by who has opened
  // it.
  const RecordList* window = nullptr;
  // What ops keep of their elements, by stage; null for a front whose ops keep nothing beyond its
  // own life.
  KeptGauge* gauges = nullptr;
  // Where ops have other work done than elements'; null where nobody does any: then there is no
  // disk that something is kept on, and the op loads its indices itself.
  Errands* errands = nullptr;
  // How many wait for the front's lock; null where nobody can.
  const std::atomic<int>* waiting = nullptr;
  // What ops have packed, by stage; null as `gauges` is.
  PackGauge* packs = nullptr;

  // What may go on for ever without a read looks at it, and returns kBlocked: to be called again,
  // unless nobody wants anything any more.
  bool interrupted() const {
    return cancelled.load(std::memory_order_relaxed) ||
           (waiting != nullptr && waiting->load(std::memory_order_relaxed) > 0);
  }

  // The pass that elements belong to in an op that Restart() has given this number: passes of a
  // nested dataset have numbers of their own.
  uint64_t PassOf(uint64_t epoch) const { return nested ? element_epoch : epoch; }
};

// Number `ordinal` of the datasets that are opened in a pass begins with Restart() of this number:
// random ops inside draw by both.
inline uint64_t NestedEpoch(uint64_t epoch, uint64_t ordinal) {
  return epoch >> 32 == 0 ? epoch << 32 | (ordinal & UINT32_MAX) : MixPath(epoch, ordinal);
}

// FrontContext::scope of the dataset that is made of an element of that path, or of several of
// which that is the first one's.
inline uint64_t ScopeOf(const FrontContext& outer, uint64_t scope_pass, uint64_t path) {
  return MixPath(MixPath(outer.scope, scope_pass), path);
}

// The pass of an element that belongs to this one by what is behind it: only `repeat` in front of
// it may have said more.
inline uint64_t LaterPass(const RecordRef& element, uint64_t pass) {
  constexpr uint64_t kMask = (uint64_t{1} << 62) - 1;
  return std::max<uint64_t>(element.epoch, pass & kMask);
}

enum class Pulled {
  kSome,     // as many elements as were asked for
  kBlocked,  // fewer: a read is under way, or it was interrupted; pull again later for the rest
  kEnd,      // fewer: the end of this pass; sticky until Restart()
  kFailed,   // fewer: OrderOp::status() says why; sticky until Restart()
};

// An element is `width` references before `batch`: one for each source that feeds it (zip makes
// more than one). Behind `batch` it is the elements of one batch.
class OrderOp {
 public:
  virtual ~OrderOp() = default;

  // Appends up to `count` elements to `out` and adds their number to `*pulled`.
  virtual Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) = 0;

  // Leaves out up to `count` elements and adds their number to `*skipped`: as Pull(), but what
  // nobody asked for need not be read. A call that was blocked is gone on with, with what is left
  // of `count`, before any Pull().
  virtual Pulled Skip(uint64_t count, uint64_t* skipped) = 0;

  // Begins another pass. Passes are numbered; a random op draws by (seed, epoch).
  virtual void Restart(uint64_t epoch) = 0;

  // The position behind the last element that was pulled. REQUIRES: no Pull() or Skip() is
  // unfinished.
  virtual void Save(Position& position) const = 0;

  // Goes to a saved position; what that takes happens in the next Pull(). REQUIRES: the op is new.
  virtual absl::Status Restore(Position& position) = 0;

  // The elements of one pass, where they are known without a pass; kEndless where it has no end.
  // While others are coming by an index that this takes it is not known yet (FileTable::AskIndex):
  // CountNow() tells that from what never is.
  static constexpr uint64_t kEndless = UINT64_MAX;
  virtual std::optional<uint64_t> Count() = 0;

  // Behind `batch`: the elements in all batches of one pass, as Count().
  virtual std::optional<uint64_t> CountRows() { return std::nullopt; }

  // Of `repeat`: its pass, from 0 on, that the last element belongs to. Others make one pass.
  virtual uint64_t pass() const { return 0; }
  // Of `repeat`: begins one of its passes. REQUIRES: the op is new.
  virtual void BeginPass(uint64_t pass) { Restart(pass); }

  // References of an element before `batch`.
  virtual uint32_t width() const = 0;

  // Why Pull() returned kFailed.
  virtual absl::Status status() const = 0;
};

// An op with one input whose elements it hands on: the parts that such ops share.
class ChainedOrderOp : public OrderOp {
 public:
  explicit ChainedOrderOp(std::unique_ptr<OrderOp> input) : input_(std::move(input)) {}
  void Restart(uint64_t epoch) override { input_->Restart(epoch); }
  void Save(Position& position) const override { input_->Save(position); }
  absl::Status Restore(Position& position) override { return input_->Restore(position); }
  std::optional<uint64_t> Count() override { return input_->Count(); }
  uint32_t width() const override { return input_->width(); }
  absl::Status status() const override { return input_->status(); }

 protected:
  OrderOp& input() { return *input_; }
  const OrderOp& input() const { return *input_; }

 private:
  std::unique_ptr<OrderOp> input_;
};

// What `op.Count()` says, for an op that decides by it in Pull() or Skip(). False while others are
// still coming by an index that it takes: the op does nothing then, and returns kBlocked.
bool CountNow(OrderOp& op, const FrontContext& context, std::optional<uint64_t>* count);

// Skip() by way of Pull(), for ops that know no shorter way. kBlocked also when the front is
// interrupted.
Pulled SkipByPulling(OrderOp& op, const FrontContext& context, uint64_t count, uint64_t* skipped);

// Makes the op of one stage over its inputs (none for a source).
using OrderInputs = std::vector<std::unique_ptr<OrderOp>>;
using OrderFactory =
    std::function<std::unique_ptr<OrderOp>(FrontContext& context, OrderInputs inputs)>;

// The op of a node over those of its inputs, measured for the node's stage (front.cc).
std::unique_ptr<OrderOp> MakeOrder(const OrderNode& node, FrontContext& context);

}  // namespace penstock
