#include "client/c/joined_rows.h"

#include <algorithm>
#include <cstring>

#include "client/c/batch.h"
#include "client/c/loader.h"
#include "client/c/rank_rows.h"
#include "ring/segment_plan.h"

namespace penstock_client {
namespace {

using penstock::ring::kMaxDims;
using penstock::ring::TensorEntry;

// Appends numbers that go on counting where the ones before end: without the 0 that they begin
// with, but for the first time.
bool AppendCounted(const int64_t* numbers, uint64_t count, AlignedBytes* to) {
  const uint64_t have = to->bytes() / sizeof(int64_t);
  if (have == 0) return to->Append(numbers, count * sizeof(int64_t));
  const int64_t base = reinterpret_cast<const int64_t*>(to->data())[have - 1];
  if (!to->Reserve(to->bytes() + (count - 1) * sizeof(int64_t))) return false;
  for (uint64_t i = 1; i < count; ++i) {
    // What lies between the ends was not looked at: it may be any number.
    const auto number =
        static_cast<int64_t>(static_cast<uint64_t>(base) + static_cast<uint64_t>(numbers[i]));
    to->Append(&number, sizeof number);
  }
  return true;
}

// Whether its rows are of another size in every batch, and padded.
bool IsPadded(const TensorEntry& entry) {
  return (entry.flags & penstock::ring::kTensorPadded) != 0 && entry.ragged_rank == 0 &&
         entry.kind != PENSTOCK_KIND_SPARSE && penstock::ring::HasUnknownAxis(entry);
}

bool IsSparse(const penstock_tensor& tensor) { return tensor.kind == PENSTOCK_KIND_SPARSE; }

void Widen(const penstock_tensor& piece, std::vector<int64_t>* shape) {
  shape->resize(piece.ndim);
  for (uint32_t axis = 1; axis < piece.ndim; ++axis)
    (*shape)[axis] = std::max((*shape)[axis], piece.shape[axis]);
}

const int64_t* Numbers(const AlignedBytes& bytes) {
  return reinterpret_cast<const int64_t*>(bytes.data());
}

}  // namespace

std::string CheckJoinable(const penstock_loader& loader) {
  for (size_t i = 0; i < loader.entries.size(); ++i) {
    const TensorEntry& entry = loader.entries[i];
    const std::string name(entry.name, entry.name_bytes);
    if ((entry.flags & penstock::ring::kTensorBatched) == 0 || entry.ndim == 0)
      return "there is one of tensor \"" + name + "\" for a whole batch of the pipeline";
    if (entry.ragged_rank > 0 || entry.kind == PENSTOCK_KIND_SPARSE || IsPadded(entry)) continue;
    for (uint32_t axis = 1; axis < entry.ndim; ++axis) {
      if (entry.shape[axis] < 0)
        return "axis " + std::to_string(axis) + " of tensor \"" + name +
               "\" has another size in every batch of the pipeline, and is not padded";
    }
  }
  return "";
}

JoinedRows::JoinedRows(const penstock_loader& loader)
    : loader_(loader), tensors_(loader.tensors.size()) {}

RowRange JoinedRows::Wanted(uint32_t count) const {
  const uint32_t end = rows_ + count;
  // A batch that ends here or later: further rows only move a rank's first one up, and its end is
  // that of a full batch at most.
  const RowRange here = RankRows(loader_, 0, end);
  const RowRange full = RankRows(loader_, 0, loader_.batch_rows);
  const uint32_t first = std::max(rows_, here.first);
  const uint32_t last = std::min(end, full.first + full.count);
  return first < last ? RowRange{first - rows_, last - first} : RowRange{};
}

bool JoinedRows::Append(const penstock_batch& piece, RowRange wanted, uint32_t count) {
  const uint32_t first = rows_ + wanted.first;
  rows_ += count;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (IsPadded(loader_.entries[i])) Widen(piece.tensors[i], &tensors_[i].shape);
  }
  if (wanted.count == 0) return true;
  // Rows in front of a gap are none that the rank will see.
  const uint32_t kept = kept_rows_;
  if (kept > 0 && kept_first_ + kept != first) Clear();
  if (kept_rows_ == 0) kept_first_ = first;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!AppendTensor(piece.tensors[i], kept_rows_, loader_.entries[i], &tensors_[i])) return false;
  }
  kept_rows_ += wanted.count;
  return true;
}

bool JoinedRows::AppendTensor(const penstock_tensor& from, int64_t first_row,
                              const TensorEntry& entry, Tensor* to) {
  // Of fixed size: all at once.
  if (to->values.data() == nullptr && penstock::ring::IsFixed(entry)) {
    const uint64_t rows = RankRows(loader_, 0, loader_.batch_rows).count;
    uint64_t bytes;
    if (__builtin_mul_overflow(entry.row_bytes, rows, &bytes) || !to->values.Reserve(bytes))
      return false;
  }
  if (IsSparse(from)) {
    Widen(from, &to->shape);
    const uint64_t before = to->indices.bytes();
    if (!to->indices.Append(from.indices, from.num_values * from.ndim * sizeof(int64_t)))
      return false;
    auto* indices = reinterpret_cast<int64_t*>(to->indices.data() + before);
    for (uint64_t value = 0; value < from.num_values; ++value) {
      int64_t& row = indices[value * from.ndim];
      row = static_cast<int64_t>(static_cast<uint64_t>(row) + static_cast<uint64_t>(first_row));
    }
  }
  if (IsPadded(entry)) to->pieces.emplace_back(from.shape, from.shape + from.ndim);
  for (uint32_t axis = 0; axis < from.ragged_rank; ++axis) {
    if (!AppendCounted(from.row_splits[axis], from.num_row_splits[axis], &to->row_splits[axis]))
      return false;
  }
  if (from.offsets != nullptr && !AppendCounted(from.offsets, from.num_strings + 1, &to->offsets))
    return false;
  return to->values.Append(from.data, from.bytes);
}

void JoinedRows::Clear() {
  kept_rows_ = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    Tensor& tensor = tensors_[i];
    tensor.values.Clear();
    tensor.offsets.Clear();
    tensor.indices.Clear();
    for (AlignedBytes& splits : tensor.row_splits) splits.Clear();
    tensor.pieces.clear();
    if (!IsPadded(loader_.entries[i])) tensor.shape.clear();
  }
}

bool JoinedRows::Complete(const penstock_tensor& tensor, Tensor* of) {
  const int64_t zero = 0;
  const auto begin = [&zero](AlignedBytes* numbers) {
    return numbers->bytes() > 0 || numbers->Append(&zero, sizeof zero);
  };
  for (uint32_t axis = 0; axis < tensor.ragged_rank; ++axis) {
    if (!begin(&of->row_splits[axis])) return false;
  }
  if (tensor.dtype == PENSTOCK_STRING && !begin(&of->offsets)) return false;
  if (IsSparse(tensor) && of->shape.empty()) of->shape.assign(tensor.ndim, 0);
  return of->values.Reserve(0) && (!IsSparse(tensor) || of->indices.Reserve(0));
}

bool JoinedRows::Lay(penstock_batch* batch, std::optional<uint32_t>* torn) {
  const RowRange seen = RankRows(loader_, 0, rows_);
  batch->first_row = seen.first;
  batch->rows = seen.count;
  batch->tensors = loader_.tensors;
  batch->shapes = loader_.shapes;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    Tensor& from = tensors_[i];
    const TensorEntry& entry = loader_.entries[i];
    penstock_tensor& tensor = batch->tensors[i];
    int64_t* shape = &batch->shapes[i * kMaxDims];
    tensor.shape = shape;
    shape[0] = kept_rows_;
    if (!Complete(tensor, &from)) return false;
    if (IsPadded(entry)) {
      from.shape.resize(entry.ndim);
      from.shape[0] = kept_rows_;
      bool inside = true;
      if (!PadTo(from.shape, entry, from.pieces, &from.values, &from.offsets, &inside))
        return false;
      if (!inside) *torn = static_cast<uint32_t>(i);
      std::copy(from.shape.begin() + 1, from.shape.end(), shape + 1);
    }
    // A rank of a batch with fewer rows than ranks may see none of them.
    const uint32_t skipped = seen.count > 0 ? seen.first - kept_first_ : 0;
    if (penstock::ring::IsFixed(entry)) {
      tensor.data = from.values.data() + skipped * entry.row_bytes;
      tensor.bytes = seen.count * entry.row_bytes;
      shape[0] = seen.count;
      continue;
    }
    tensor.data = from.values.data();
    tensor.bytes = from.values.bytes();
    if (from.offsets.bytes() > 0) {
      tensor.offsets = Numbers(from.offsets);
      tensor.num_strings = from.offsets.bytes() / sizeof(int64_t) - 1;
    }
    for (uint32_t axis = 0; axis < tensor.ragged_rank; ++axis) {
      tensor.row_splits[axis] = Numbers(from.row_splits[axis]);
      tensor.num_row_splits[axis] = from.row_splits[axis].bytes() / sizeof(int64_t);
      shape[axis + 1] = -1;
    }
    if (IsSparse(tensor)) {
      std::copy(from.shape.begin() + 1, from.shape.end(), shape + 1);
      tensor.indices = Numbers(from.indices);
      tensor.num_values = from.indices.bytes() / sizeof(int64_t) / tensor.ndim;
    }
    if ((skipped > 0 || seen.count != kept_rows_) &&
        !TakeRows(skipped, seen.count, &tensor, shape, &batch->counted_anew)) {
      *torn = static_cast<uint32_t>(i);
    }
  }
  return true;
}

}  // namespace penstock_client
