// How the elements of a batch become its memory: the work behind the order, the tensors that it
// fills, and how their rows lie.
//
// Threads: constant after construction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/order/dataset.h"
#include "server/engine/tensor/batch_form.h"
#include "server/engine/tensor/batch_sink.h"
#include "server/engine/tensor/world.h"

namespace penstock {

class BatchProgram {
 public:
  BatchProgram() = default;

  // Of a dataset whose work must outlive it. InvalidArgument, with the feature's name, for what
  // fits no batch. In a world of several hosts its tensors are this host's.
  static absl::StatusOr<BatchProgram> Create(const Dataset& dataset,
                                             absl::Span<const std::string> stage_names,
                                             World world = {});

  const WorkNode& work() const { return *work_; }
  absl::Span<const std::string> stage_names() const { return stage_names_; }
  // The sources whose references are resolved ahead of their use, and which of a row's references
  // are theirs.
  struct Resolved {
    const ColumnLoader* loader;
    uint32_t reference;
    uint32_t first_file;  // of the source
    int stage;
  };
  const std::vector<Resolved>& resolved() const { return resolved_; }
  // References of one row.
  uint32_t width() const { return width_; }
  // Of each element, behind the others, that no work reads.
  void AddReference() { ++width_; }
  // One element as a consumer sees it: with the batch axis (kUnknownSize when the last batch may be
  // shorter).
  const Signature& element() const { return element_; }
  // The tensors of a full batch; in a world, of the most rows that the host has of any batch that
  // is not larger.
  const std::vector<BatchTensor>& tensors() const { return tensors_; }
  const std::vector<RowLayout>& layouts() const { return layouts_; }
  // Bytes of one row of each tensor; 0 where only the data tells.
  const std::vector<size_t>& row_bytes() const { return row_bytes_; }
  // Bytes of all tensors of a size that is known, without alignment; and whether there are others.
  uint64_t fixed_bytes() const { return fixed_bytes_; }
  bool has_variable() const { return has_variable_; }
  const BatchForm& form() const { return form_; }
  bool batched() const { return batched_; }
  // Rows of a full batch, those of other hosts too; 1 without `batch`.
  uint32_t batch_rows() const { return batch_rows_; }
  World world() const { return world_; }
  // Whether all rows of a batch are computed, though some are other hosts': how large one row is in
  // the batch is for all of them to say.
  bool computes_all_rows() const { return computes_all_rows_; }
  // The most rows that are computed of a batch.
  uint32_t computed_rows() const { return computes_all_rows_ ? batch_rows_ : most_rows_; }
  // The rows of the tensors of a batch that has `rows` elements, and how many of them are elements.
  struct Rows {
    RowSpan shown;  // of the elements, this host's
    uint32_t shape_rows = 0;
  };
  Rows RowsOf(uint32_t rows) const;
  // Rows that one task computes at most, and those of a grain, of which tasks are made: powers of
  // two.
  uint32_t block_rows() const { return block_rows_; }
  uint32_t grain_rows() const { return std::max(block_rows_ / kGrainsPerBlock, uint32_t{1}); }

 private:
  static constexpr uint32_t kGrainsPerBlock = 8;

  absl::Status AddTensor(const Dataset& dataset, size_t index);
  absl::Status MakeRagged(BatchTensor* tensor, Feature* seen) const;
  absl::Status MakePackedRagged(BatchTensor* tensor, Feature* seen) const;
  RowLayout LayoutOf(const Dataset& dataset, size_t index) const;

  const WorkNode* work_ = nullptr;
  absl::Span<const std::string> stage_names_;  // the plan's
  std::vector<Resolved> resolved_;
  uint32_t width_ = 0;
  BatchForm form_;
  bool batched_ = false;
  World world_;
  bool computes_all_rows_ = false;
  uint32_t batch_rows_ = 1;
  uint32_t most_rows_ = 1;  // of the tensors
  uint32_t block_rows_ = 1;
  Signature element_;
  std::vector<BatchTensor> tensors_;
  std::vector<RowLayout> layouts_;
  std::vector<size_t> row_bytes_;
  uint64_t fixed_bytes_ = 0;
  bool has_variable_ = false;
};

}  // namespace penstock
