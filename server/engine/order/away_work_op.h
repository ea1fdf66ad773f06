// Work ops whose rows others compute: another process, a device, another machine.
//
// A worker begins the rows of a block and goes on with something else (rows_away.h). Where nothing
// can be left, as in front of a branch or of work that pipelines share, Run() waits.
//
// Threads:  constant after construction; Begin() by any worker, for several blocks at a time.
// Owns:     nothing of a block: what AwayRows refers to is the caller's, and belongs to the op from
//           Begin() until `end` is told.
// Limits:   the op's own: how many blocks it does at a time. As many may be waiting for it as steps
//           have room for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/arena.h"
#include "base/column.h"
#include "base/completion.h"
#include "base/lone_row_room.h"
#include "server/engine/order/away_workers.h"
#include "server/engine/order/work_op.h"

namespace penstock {

// The rows of one block.
struct AwayRows {
  int rows = 0;
  absl::Span<const Column> in;  // as WorkOp::Run() has them
  // To be set, each to memory of `arena`, or to what lives until the block is done; none is a view
  // of `in`. Where `out[i].data` is set, that is the feature's place in the batch: it may be left
  // there, dense, and is copied no more then.
  absl::Span<Column> out;
  Arena* arena = nullptr;
  // Of a row that is alone in its batch; null: it is not, or has no such place.
  LoneRowRoom* room = nullptr;
  // To be set where a row fails: the lowest one. The rows in front of it are made.
  RowStatus failure = {};
};

class AwayWorkOp : public WorkOp {
 public:
  const AwayWorkOp* away() const final { return this; }

  // Begins them. `end` is told when they are made, or a row has failed; with an error, which counts
  // as the first row's, when nothing can be said of them. When `end` is cancelled
  // (Completion::OnCancel), they need not be made.
  virtual void Begin(AwayRows* rows, Completion end) const = 0;

  // What is shown meanwhile, as in "computing rows in Python": static text.
  virtual const char* doing() const = 0;
  // And where, such as the function's name.
  virtual std::string place() const = 0;

  // Who computes them, where these are processes that are the op's; and what they did since then.
  virtual std::optional<AwayWorkers> workers() const { return std::nullopt; }
  virtual std::vector<AwaySpan> SpansSince(uint64_t monotonic_ns) const { return {}; }

  // The same, waited for.
  RowStatus Run(int rows, absl::Span<const Column> in, absl::Span<Column> out,
                Arena& arena) const final;
};

}  // namespace penstock
