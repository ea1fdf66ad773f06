// One tensor of one step whose size only the data tells: its rows are kept by the tasks that make
// them and, when all are there, laid into the slot.
//
// Threads:  Reset() before the step's tasks; Put() by the task that computes those rows; Measure()
//           and then Write() by the one that ends last.
// Owns:     a copy of every value.
// Cost:     two copies of the values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "server/base/column.h"
#include "server/engine/batch_form.h"
#include "server/engine/batch_sink.h"

namespace penstock {

class VariableTensor {
 public:
  static constexpr size_t kParts = 4;
  // More bytes than any slot has: what Measure() says of sizes that overflow.
  static constexpr uint64_t kTooMany = uint64_t{1} << 60;
  using PartBytes = std::array<uint64_t, kParts>;

  // Both must outlive it.
  VariableTensor(const BatchTensor& tensor, const RowLayout& layout)
      : tensor_(tensor), layout_(layout) {}

  void Reset(size_t blocks);

  // Keeps `rows` more rows in a block. DataLoss for one that is larger than it is to be padded to.
  RowStatus Put(size_t block, uint32_t rows, const Column& column);

  // The bytes of its parts, in the order of ring/layout.h, in a batch of `rows` rows and then
  // others that are no elements, `shape_rows` in all. Fails at the first row whose shape differs
  // from the first one's, where that must not be.
  RowStatus Measure(uint32_t rows, uint32_t shape_rows, PartBytes* bytes);

  // REQUIRES: Measure(), and as much room as it said.
  void Write(const std::array<uint8_t*, kParts>& parts) const;

 private:
  // The rows of one task.
  struct Block {
    uint32_t rows = 0;
    std::string bytes;            // of the values
    std::vector<uint32_t> sizes;  // strings: of each
    std::vector<int64_t> dims;    // of each row: its shape
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
  std::vector<Block> blocks_;

  // Of the batch that was measured.
  uint32_t shape_rows_ = 0;
  Shape shape_;  // of each row; ragged: unused
};

}  // namespace penstock
