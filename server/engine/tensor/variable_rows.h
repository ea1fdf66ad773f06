// The tensors of one step whose sizes only the data tells, until all its rows are there: then they
// are laid into the slot one after another.
//
// Threads:  Reset() before the step's tasks, Put() by the task that computes those rows, Lay() by
//           the one that ends last.
// Owns:     a copy of every value, unless its bytes stay in the cell of its record, or lie in the
//           slot.
// Limits:   what Lay() has room for; more is an error with both figures.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "base/column.h"
#include "base/memory_charge.h"
#include "server/engine/read/record.h"
#include "server/engine/tensor/batch_form.h"
#include "server/engine/tensor/batch_sink.h"
#include "server/engine/tensor/joined_tensor.h"
#include "server/engine/tensor/slot_room.h"
#include "server/engine/tensor/world.h"

namespace penstock {

class VariableRows {
 public:
  // For tensors of which those that are not fixed count, and at most `blocks` tasks. What the spans
  // show must outlive it.
  void Reset(absl::Span<const BatchTensor> tensors, absl::Span<const RowLayout> layouts,
             uint32_t blocks);

  // Only these of the step's rows are laid; the others have their say in the shape of what is. All
  // of them, where nobody calls it behind Reset().
  void Show(RowSpan rows);

  // The slot's memory, for large values of numbers of the row that is alone in the step: what lies
  // there in the end is copied no more. Null where it would be.
  LoneRowRoom* RoomIn(const ClaimedSlot& slot);

  // The number of the next task's block.
  uint32_t TakeBlock() { return blocks_taken_.fetch_add(1, std::memory_order_relaxed); }

  // Keeps rows [first, first + rows) of tensor number `tensor`, behind those that the same block
  // has already; a failing row is counted from `first`. `records`: `width` of each of these rows,
  // whose cells are the step's until it is published; there may be none.
  RowStatus Put(size_t tensor, uint32_t block, uint32_t first, uint32_t rows, const Column& column,
                const RecordRef* records = nullptr, uint32_t width = 0);

  // Fills `slot.variable` with `rows` rows, and further ones that are no elements up to
  // `shape_rows`, and tells where everything lies. `row` of a failure is -1 when it is none of a
  // row.
  RowStatus Lay(const ClaimedSlot& slot, uint32_t rows, uint32_t shape_rows,
                std::vector<TensorExtent>* extents);

  // The same in two parts, for one who makes room first: finds where everything is to lie, in how
  // many bytes, and writes it there.
  RowStatus Measure(uint32_t rows, uint32_t shape_rows, std::vector<TensorExtent>* extents,
                    uint64_t* bytes);
  void Write(uint8_t* variable, const std::vector<TensorExtent>& extents) const;

 private:
  MemoryCharge charge_;  // of the rows that are kept
  SlotRoom room_;
  RowSpan shown_{0, UINT32_MAX};
  std::atomic<uint32_t> blocks_taken_{0};
  std::vector<int> of_tensor_;  // the position in tensors_; -1 for fixed tensors
  std::vector<std::unique_ptr<JoinedTensor>> tensors_;
};

}  // namespace penstock
