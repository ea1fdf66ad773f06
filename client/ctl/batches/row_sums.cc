#include "client/ctl/batches/row_sums.h"

#include <cstddef>

#include "client/ctl/batches/crc32c.h"

namespace penstock::ctl {
namespace {

void Add(const void* data, uint64_t bytes, uint32_t* sum) {
  *sum = AddToCrc32c(*sum, {static_cast<const std::byte*>(data), bytes});
}

// Values `first` to `last - 1` of a tensor's, each of so many bytes; or its strings.
void AddValues(const penstock_tensor& tensor, uint64_t value_bytes, uint64_t first, uint64_t last,
               uint32_t* sum) {
  const auto* const data = static_cast<const std::byte*>(tensor.data);
  if (tensor.dtype != PENSTOCK_STRING) {
    Add(data + first * value_bytes, (last - first) * value_bytes, sum);
    return;
  }
  for (uint64_t i = first; i < last; ++i) {
    const int64_t bytes = tensor.offsets[i + 1] - tensor.offsets[i];
    Add(&bytes, sizeof(bytes), sum);
    Add(data + tensor.offsets[i], static_cast<uint64_t>(bytes), sum);
  }
}

void AddSparse(const penstock_tensor& tensor, std::vector<uint32_t>* sums) {
  for (uint64_t i = 0; i < tensor.num_values; ++i) {
    const int64_t* const place = tensor.indices + i * tensor.ndim;
    const auto row = tensor.batched ? static_cast<uint64_t>(place[0]) : 0;
    if (row >= sums->size()) continue;
    uint32_t* const sum = &(*sums)[row];
    Add(place + 1, (tensor.ndim - 1) * sizeof(int64_t), sum);
    AddValues(tensor, tensor.element_bytes, i, i + 1, sum);
  }
}

void AddTensor(const penstock_tensor& tensor, std::vector<uint32_t>* sums) {
  if (tensor.kind == PENSTOCK_KIND_SPARSE) return AddSparse(tensor, sums);
  const uint64_t rows = tensor.batched ? sums->size() : 1;
  // What the innermost ragged axis counts or, without one, the rows.
  uint64_t counted = rows;
  if (tensor.ragged_rank > 0) {
    const uint32_t axis = tensor.ragged_rank - 1;
    counted = static_cast<uint64_t>(tensor.row_splits[axis][tensor.num_row_splits[axis] - 1]);
  }
  const bool is_string = tensor.dtype == PENSTOCK_STRING;
  const uint64_t values = is_string ? tensor.num_strings : tensor.bytes;
  const uint64_t each = counted == 0 ? 0 : values / counted;
  for (uint64_t row = 0; row < rows; ++row) {
    uint64_t first = row, last = row + 1;
    for (uint32_t axis = 0; axis < tensor.ragged_rank; ++axis) {
      const int64_t* const splits = tensor.row_splits[axis];
      for (uint64_t i = first; i < last; ++i) {
        const int64_t size = splits[i + 1] - splits[i];
        Add(&size, sizeof(size), &(*sums)[row]);
      }
      first = static_cast<uint64_t>(splits[first]);
      last = static_cast<uint64_t>(splits[last]);
    }
    if (is_string) {
      AddValues(tensor, 0, first * each, last * each, &(*sums)[row]);
    } else {
      AddValues(tensor, each, first, last, &(*sums)[row]);
    }
  }
}

}  // namespace

std::vector<uint32_t> RowSums(const Batch& batch) {
  std::vector<uint32_t> sums(batch.rows(), ~0u);
  if (sums.empty()) return sums;
  for (size_t i = 0; i < batch.size(); ++i)
    AddTensor(*penstock_batch_tensor(batch.get(), static_cast<uint32_t>(i)), &sums);
  return sums;
}

}  // namespace penstock::ctl
