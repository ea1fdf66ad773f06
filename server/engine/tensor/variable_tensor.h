// One tensor of one step whose size only the data tells: its rows are kept by the tasks that make
// them and, when all are there, laid into the slot.
//
// Threads:  as server/engine/tensor/joined_tensor.h says.
// Owns:     a copy of every value; of strings that stay, their places.
// Cost:     two copies of the values; one of strings that stay; none of what lies in the slot.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/column.h"
#include "base/staying_room.h"
#include "server/engine/tensor/batch_form.h"
#include "server/engine/tensor/batch_sink.h"
#include "server/engine/tensor/joined_tensor.h"

namespace penstock {

class VariableTensor final : public JoinedTensor {
 public:
  // Both must outlive it.
  VariableTensor(const BatchTensor& tensor, const RowLayout& layout)
      : tensor_(tensor), layout_(layout) {}

  size_t num_parts() const override;
  void Reset(size_t blocks) override;
  // DataLoss for a row that is larger than it is to be padded to.
  RowStatus Put(size_t block, uint32_t first, uint32_t rows, const Column& column) override;
  RowStatus PutStaying(size_t block, uint32_t first, uint32_t rows, const Column& column) override;
  bool may_lie_in_slot() const override {
    return !tensor_.batched && !is_ragged() && !layout_.pads;
  }
  void PutInSlot(size_t block, uint32_t first, const Column& column) override;
  const uint8_t* in_slot() const override { return in_slot_.data; }
  bool keeps_places() const override {
    return is_string() && axes() == 0 && !is_ragged() && !layout_.pads;
  }
  void Order(size_t count) override { OrderBlocks(count, &blocks_); }
  // Fails at the first row whose shape differs from the first one's, where that must not be.
  RowStatus Measure(uint32_t rows, uint32_t shape_rows, PartBytes* bytes) override;
  void Write(const std::array<uint8_t*, kParts>& parts) const override;

 private:
  // The rows of one task; `bytes` and `sizes` of those that are shown.
  struct Block {
    std::optional<uint32_t> first;  // of its rows, in the step
    uint32_t rows = 0;
    std::string bytes;            // of the values
    std::vector<uint32_t> sizes;  // strings: of each
    // Instead of all of these, the places of strings that stay, and their bytes together.
    std::vector<RowBytes> places;
    uint64_t place_bytes = 0;
    std::vector<std::shared_ptr<StayingRoom>> rooms;  // in which some of them may lie
    std::vector<int64_t> dims;                        // of each row: its shape
  };
  // One row, wherever it is kept.
  struct Row {
    const char* bytes;
    const uint32_t* sizes;
    const int64_t* dims;
    size_t elements;
  };

  bool is_string() const { return layout_.row.dtype == DType::kString; }
  bool is_ragged() const { return tensor_.kind == TensorKind::kRagged; }
  size_t axes() const { return layout_.row.shape.size(); }

  template <typename Visit>
  void VisitRows(const Visit& visit) const;
  RowStatus FindShape();
  void WriteNumbers(uint8_t* values) const;
  void WriteStrings(uint8_t* offsets, uint8_t* values) const;
  void WriteSplits(uint8_t* const* parts) const;

  const BatchTensor& tensor_;
  const RowLayout& layout_;
  mutable std::vector<Block> blocks_;  // who writes a block's strings lets go of their rooms

  RowBytes in_slot_ = {};  // the step's only row, where it lies there

  // Of the batch that was measured.
  uint32_t shape_rows_ = 0;
  Shape shape_;  // of each row; ragged: unused
};

}  // namespace penstock
