// One tensor of one step whose size only the data tells: its rows are kept by the tasks that make
// them and, when all are there, laid into the slot.
//
// Threads:  Reset() before the step's tasks; Put() by the task that computes those rows; Order(),
//           Measure() and then Write() by the one that ends last.
// Owns:     a copy of every value, unless it is told that the value's bytes stay (PutStaying).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/column.h"
#include "server/engine/tensor/batch_form.h"
#include "server/engine/tensor/batch_sink.h"
#include "server/engine/tensor/world.h"

namespace penstock {

class JoinedTensor {
 public:
  static constexpr size_t kParts = 4;
  // More bytes than any slot has: what Measure() says of sizes that overflow.
  static constexpr uint64_t kTooMany = uint64_t{1} << 60;
  using PartBytes = std::array<uint64_t, kParts>;

  virtual ~JoinedTensor() = default;

  // How many parts it has in a slot; constant.
  virtual size_t num_parts() const = 0;

  // For a step of at most as many tasks.
  virtual void Reset(size_t blocks) = 0;
  // Behind Reset(): which of the step's rows are to be laid into the slot.
  void Show(RowSpan rows) { shown_ = rows; }

  // Keeps `rows` rows of the step, from its row `first` on, behind those that the same block has
  // already. Of a row that is not shown only what the shape of the others may depend on.
  virtual RowStatus Put(size_t block, uint32_t first, uint32_t rows, const Column& column) = 0;
  // The same of rows whose bytes stay where they are until Write() has been called: whoever can
  // do without a copy takes none.
  virtual RowStatus PutStaying(size_t block, uint32_t first, uint32_t rows, const Column& column) {
    return Put(block, first, rows, column);
  }
  // Whether the values of a step's only row may lie in the slot before they are put; those of
  // strings never do.
  virtual bool may_lie_in_slot() const { return false; }
  // Of one that may: the row `first`, whose values lie there already, and stay.
  virtual void PutInSlot(size_t /*block*/, uint32_t /*first*/, const Column& /*column*/) {}
  // Where that is: the first part is not laid then. Null: nowhere.
  virtual const uint8_t* in_slot() const { return nullptr; }
  // Whether PutStaying() makes a difference.
  virtual bool keeps_places() const { return false; }

  // Brings the blocks, of which the first `count` were put into, into the order of their rows.
  virtual void Order(size_t count) = 0;

  // The bytes of its parts, in the order of ring/layout.h, in a batch of `rows` shown rows and then
  // others that are no elements, `shape_rows` in all.
  virtual RowStatus Measure(uint32_t rows, uint32_t shape_rows, PartBytes* bytes) = 0;

  // REQUIRES: Measure(), and as much room as it said.
  virtual void Write(const std::array<uint8_t*, kParts>& parts) const = 0;

 protected:
  bool IsShown(uint32_t first, uint32_t row) const { return shown_.Has(uint64_t{first} + row); }

 private:
  RowSpan shown_{0, UINT32_MAX};
};

// As JoinedTensor::Order(), of what have their step's row at which they begin as `first`. What no
// step needs any more is given back.
template <typename Block>
void OrderBlocks(size_t count, std::vector<Block>* blocks) {
  std::sort(blocks->begin(), blocks->begin() + count,
            [](const Block& a, const Block& b) { return a.first < b.first; });
  std::fill(blocks->begin() + count, blocks->end(), Block());
}

// Both arguments must outlive it.
std::unique_ptr<JoinedTensor> MakeJoinedTensor(const BatchTensor& tensor, const RowLayout& layout);

}  // namespace penstock
