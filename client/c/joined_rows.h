// Rows of several steps, copied behind one another: a batch that crosses from one slot into the
// next.
//
//   slot of step 7:  … row 48 │ … │ row 63        slot of step 8:  row 0 │ … │ row 31 …
//                    └──── appended ────┘                          └─── appended ────┘     ► one tensor of 48 rows
//
// Offsets, row splits and the rows of sparse indices go on counting. Rows that the pipeline has
// padded to the largest of each of its batches are padded on to the largest of those batches that
// the joined one has rows of, whatever a rank sees of it. Of a rank's rows only those are kept that
// it may come to see: which these are is known when the batch is complete, since a short one is
// divided otherwise.
//
// Threads:  one at a time; who reads the tensors that Lay() shows may do so from any.
// Owns:     its memory, which the shown tensors lie in.
// Limits:   tensors whose first axis counts rows, and whose other axes are the same in every batch,
//           ragged, or padded with what the daemon tells (CheckJoinable).
// Cost:     one copy of every byte that is kept, and an allocation for each part of a tensor; a
//           second copy of padded rows where their batches were of unlike sizes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/c/aligned_bytes.h"
#include "client/c/padded_pieces.h"
#include "client/c/penstock.h"
#include "ring/layout.h"

namespace penstock_client {

// Some of the rows of a step or a batch.
struct RowRange {
  uint32_t first = 0;
  uint32_t count = 0;
  bool operator==(const RowRange&) const = default;
};

// "" where batches of this loader can be joined, else the reason why not, as the end of a sentence.
std::string CheckJoinable(const penstock_loader& loader);

class JoinedRows {
 public:
  // REQUIRES: CheckJoinable() has found nothing; the loader outlives it.
  explicit JoinedRows(const penstock_loader& loader);

  // The rows appended so far, kept or not.
  uint32_t rows() const { return rows_; }

  // Which of the next `count` rows are to be appended: those that its rank may come to see.
  RowRange Wanted(uint32_t count) const;
  // Appends them: `piece` shows exactly these, and `count` rows come with it. False where there is
  // no memory.
  bool Append(const penstock_batch& piece, RowRange wanted, uint32_t count);

  // Shows its rank's rows in `batch`, which keeps these joined rows as long as it is used: false
  // where there is no memory. `torn` becomes the tensor of which an offset or a row split led out
  // of it, and is left alone if there is none.
  bool Lay(penstock_batch* batch, std::optional<uint32_t>* torn);

 private:
  struct Tensor {
    AlignedBytes values, offsets, indices;
    AlignedBytes row_splits[PENSTOCK_MAX_RAGGED_RANK];
    std::vector<int64_t> shape;       // of sparse and padded ones: the largest of all pieces
    std::vector<PaddedPiece> pieces;  // of padded ones, as they lie in `values` and `offsets`
  };

  bool AppendTensor(const penstock_tensor& from, int64_t first_row,
                    const penstock::ring::TensorEntry& entry, Tensor* to);
  // Gives a tensor of which nothing was kept what an empty one has.
  static bool Complete(const penstock_tensor& tensor, Tensor* of);
  void Clear();

  const penstock_loader& loader_;
  uint32_t rows_ = 0;
  // Those that are kept lie side by side.
  uint32_t kept_first_ = 0;
  uint32_t kept_rows_ = 0;
  std::vector<Tensor> tensors_;
};

}  // namespace penstock_client
