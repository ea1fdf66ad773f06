#include "server/codec/json_row.h"

#include <algorithm>
#include <cstring>

#include "absl/types/span.h"
#include "base/packed_row.h"
#include "server/codec/json_decoder.h"

namespace penstock {
namespace {

constexpr size_t kKeptBytes = size_t{1} << 20;

template <typename T>
void Clear(std::vector<T>* values) {
  if (values->capacity() * sizeof(T) > kKeptBytes) std::vector<T>().swap(*values);
  values->clear();
}

}  // namespace

void ClearJsonValues(const JsonField& field, uint8_t* to, JsonValues* values) {
  values->count = 0;
  values->to = to;
  values->view = {};
  Clear(&values->bytes);
  Clear(&values->sizes);
  values->splits.resize(field.shape.size());
  for (std::vector<int64_t>& splits : values->splits) {
    Clear(&splits);
    splits.push_back(0);
  }
}

void MakeJsonRow(const JsonField& field, const JsonValues& values, Arena& arena, RowBytes* row,
                 int64_t* dims) {
  if (field.shape.empty()) {
    *row = values.view;
    return;
  }
  const size_t sizes_bytes = values.sizes.size() * sizeof(uint32_t);
  if (field.type.packed()) {
    PackedValues packed{values.bytes.data(), values.bytes.size(), nullptr, values.count};
    if (field.type.dtype == DType::kString)
      packed.string_sizes = reinterpret_cast<const uint8_t*>(values.sizes.data());
    *row = PackRagged(absl::MakeConstSpan(values.splits).subspan(1, field.list_axes - 1), packed,
                      arena);
    return;
  }
  uint8_t* const to = arena.Allocate(sizes_bytes + values.bytes.size());
  if (sizes_bytes > 0) std::memcpy(to, values.sizes.data(), sizes_bytes);
  if (!values.bytes.empty())
    std::memcpy(to + sizes_bytes, values.bytes.data(), values.bytes.size());
  *row = {to, sizes_bytes + values.bytes.size()};
  if (dims == nullptr) return;
  std::copy(field.shape.begin(), field.shape.end(), dims);
  if (field.list_axes == 1) dims[0] = values.splits[0].back();
}

}  // namespace penstock
