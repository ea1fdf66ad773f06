// The order of `batch`, `padded_batch`, `ragged_batch` and `sparse_batch`, which differ only in how
// rows are laid.
//
// Threads: while a plan is made; the op itself under the front's lock.
#pragma once

#include "absl/status/statusor.h"
#include "penstock/v1/ops.pb.h"
#include "server/engine/plan/plan_builder.h"
#include "server/engine/tensor/batch_form.h"

namespace penstock {

// The options that the three share. InvalidArgument where they contradict each other, or where
// there are batches already.
template <typename Options>
absl::StatusOr<BatchForm> ReadBatchOptions(const Options& options, PlanBuilder& plan);

// Joins `rows` elements a time: SetBatch() and the order op.
void AddBatch(PlanBuilder& plan, uint32_t rows, BatchForm form);

// The same with sizes that are taken by turns, of which `form.remainder` is KEEP or DROP.
void AddBatches(PlanBuilder& plan, std::vector<uint32_t> sizes, BatchForm form);

// How the spec says the two ends of a batch: for ReadBatchOptions().
struct LastBatchOptions {
  int64_t batch_size = 0;
  std::optional<bool> drop_remainder;
  std::optional<v1::LastBatch::Remainder> remainder;
};
absl::StatusOr<BatchForm> CheckBatchOptions(const LastBatchOptions& options, PlanBuilder& plan);

template <typename Options>
absl::StatusOr<BatchForm> ReadBatchOptions(const Options& options, PlanBuilder& plan) {
  LastBatchOptions last;
  last.batch_size = options.batch_size();
  if (options.has_drop_remainder()) last.drop_remainder = options.drop_remainder();
  if (options.has_remainder()) last.remainder = options.remainder();
  return CheckBatchOptions(last, plan);
}

}  // namespace penstock
