#include "client/c/rank_rows.h"

namespace penstock_client {
namespace {

// Numbers [first, first + count] counted from the first of them; false when they are no range of
// [0, limit].
bool CountAnew(uint64_t first, uint64_t count, uint64_t limit, const int64_t** numbers,
               uint64_t* begin, uint64_t* end, std::vector<std::vector<int64_t>>* counted_anew) {
  const int64_t low = (*numbers)[first];
  const int64_t high = (*numbers)[first + count];
  if (low < 0 || high < low || static_cast<uint64_t>(high) > limit) return false;
  std::vector<int64_t>& anew = counted_anew->emplace_back(count + 1);
  for (uint64_t i = 0; i <= count; ++i) anew[i] = (*numbers)[first + i] - low;
  *numbers = anew.data();
  *begin = static_cast<uint64_t>(low);
  *end = static_cast<uint64_t>(high);
  return true;
}

// The values of the rows [first_row, first_row + rows), which lie side by side, and their indices
// counted anew.
bool TakeSparse(uint32_t first_row, uint32_t rows, penstock_tensor* tensor, int64_t* shape,
                std::vector<std::vector<int64_t>>* counted_anew) {
  const uint64_t ndim = tensor->ndim;
  const auto row_before = [&](uint64_t value, uint64_t row) {
    return tensor->indices[value * ndim] < static_cast<int64_t>(row);
  };
  const auto lower_bound = [&](uint64_t row) {
    uint64_t low = 0, high = tensor->num_values;
    while (low < high) {
      const uint64_t middle = low + (high - low) / 2;
      (row_before(middle, row) ? low : high) = row_before(middle, row) ? middle + 1 : middle;
    }
    return low;
  };
  uint64_t begin = lower_bound(first_row);
  uint64_t end = lower_bound(uint64_t{first_row} + rows);
  if (end < begin) return false;
  const uint64_t count = end - begin;
  std::vector<int64_t>& anew =
      counted_anew->emplace_back(tensor->indices + begin * ndim, tensor->indices + end * ndim);
  for (uint64_t value = 0; value < count; ++value) anew[value * ndim] -= first_row;
  // An empty vector has no memory, and a sparse tensor without values is sparse still.
  if (count > 0) tensor->indices = anew.data();
  tensor->num_values = count;
  if (tensor->offsets != nullptr) {
    if (!CountAnew(begin, count, tensor->bytes, &tensor->offsets, &begin, &end, counted_anew))
      return false;
    tensor->num_strings = count;
  } else {
    begin *= tensor->element_bytes;
    end *= tensor->element_bytes;
  }
  tensor->data = static_cast<const uint8_t*>(tensor->data) + begin;
  tensor->bytes = end - begin;
  shape[0] = rows;
  return true;
}

}  // namespace

bool TakeRows(uint32_t first_row, uint32_t rows, penstock_tensor* tensor, int64_t* shape,
              std::vector<std::vector<int64_t>>* counted_anew) {
  if (tensor->kind == PENSTOCK_KIND_SPARSE)
    return TakeSparse(first_row, rows, tensor, shape, counted_anew);
  uint64_t begin = first_row;
  uint64_t end = uint64_t{first_row} + rows;
  for (uint32_t axis = 0; axis < tensor->ragged_rank; ++axis) {
    if (end >= tensor->num_row_splits[axis]) return false;
    const uint64_t limit =
        axis + 1 < tensor->ragged_rank ? tensor->num_row_splits[axis + 1] - 1 : uint64_t{1} << 62;
    const uint64_t count = end - begin;
    if (!CountAnew(begin, count, limit, &tensor->row_splits[axis], &begin, &end, counted_anew)) {
      return false;
    }
    tensor->num_row_splits[axis] = count + 1;
  }
  // From rows of the last axis to elements.
  uint64_t inner = 1;
  for (uint32_t axis = tensor->ragged_rank + 1; axis < tensor->ndim; ++axis) {
    inner *= static_cast<uint64_t>(shape[axis]);
  }
  begin *= inner;
  end *= inner;
  if (tensor->offsets != nullptr) {
    if (end > tensor->num_strings) return false;
    const uint64_t count = end - begin;
    if (!CountAnew(begin, count, tensor->bytes, &tensor->offsets, &begin, &end, counted_anew)) {
      return false;
    }
    tensor->num_strings = count;
  } else {
    begin *= tensor->element_bytes;
    end *= tensor->element_bytes;
    if (end > tensor->bytes) return false;
  }
  tensor->data = static_cast<const uint8_t*>(tensor->data) + begin;
  tensor->bytes = end - begin;
  shape[0] = rows;
  return true;
}

}  // namespace penstock_client
