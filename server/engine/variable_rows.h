// The strings of one step, until all its rows are there: then they are laid into the slot one after another.
//
// Threads:  Reset() before the step's tasks, Put() by the task that computes those rows, Lay() by the one that ends last.
// Owns:     a copy of every value.
// Limits:   what Lay() has room for; more is an error with both figures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/base/column.h"
#include "server/engine/batch_sink.h"

namespace penstock {

class VariableRows {
 public:
  // For tensors of which those that are not fixed count, and tasks of `block_rows` rows.
  void Reset(absl::Span<const BatchTensor> tensors, uint32_t rows, uint32_t block_rows);

  // Keeps rows [first, first + rows) of tensor number `tensor`.
  void Put(size_t tensor, uint32_t first, uint32_t rows, const Column& column);

  // Fills `slot.variable` with `rows` rows and tells where everything lies.
  absl::Status Lay(const ClaimedSlot& slot, uint32_t rows, std::vector<TensorExtent>* extents);

 private:
  // The values of one tensor in the rows of one task.
  struct Block {
    std::string bytes;
    std::vector<uint32_t> sizes;
  };
  struct Strings {
    std::string name;
    std::vector<Block> blocks;
  };

  uint32_t block_rows_ = 1;
  std::vector<int> of_tensor_;  // the position in strings_; -1 for fixed tensors
  std::vector<Strings> strings_;
};

}  // namespace penstock
