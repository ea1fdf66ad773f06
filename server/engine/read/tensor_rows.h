// The rows of one tensor: its slices along the first axis, or all of it as one row. What
// from_tensors and from_tensor_slices load.
//
// Threads:  constant after construction; Load() is safe from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/signature.h"
#include "server/engine/read/column_loader.h"
#include "server/engine/read/file_array.h"

namespace penstock {

class TensorRows {
 public:
  virtual ~TensorRows() = default;

  // As ColumnLoader::Load() for one column. A row's number is its reference's `offset`.
  virtual RowStatus Load(RowReferences rows, FileTable& files, Column* out, Arena& arena) const = 0;

  // Where a row lies in a file, if it does.
  virtual std::optional<RecordRef> Locate(uint64_t row) const { return std::nullopt; }
};

// How a tensor of `type` is cut.
struct RowCut {
  uint64_t rows = 1;
  TensorType row_type;
};
// REQUIRES: the shape is known and, for slices, has an axis.
RowCut CutRows(const TensorType& type, bool slices);

// Of values in memory, in C order. REQUIRES: as many as the type says.
std::unique_ptr<TensorRows> NumberRows(const RowCut& cut, const std::string& values);
std::unique_ptr<TensorRows> StringRows(const RowCut& cut, const std::vector<std::string>& values);
// Of an array in a file. REQUIRES: of the cut's type.
std::unique_ptr<TensorRows> FileRows(const RowCut& cut, std::unique_ptr<FileArray> array);

}  // namespace penstock
