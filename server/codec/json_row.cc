#include "server/codec/json_row.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/types/span.h"
#include "base/packed_row.h"
#include "base/staying_room.h"

namespace penstock {
namespace {

constexpr size_t kKeptBytes = size_t{1} << 20;

template <typename T>
void Clear(std::vector<T>* values) {
  if (values->capacity() * sizeof(T) > kKeptBytes) std::vector<T>().swap(*values);
  values->clear();
}

void PutDefault(const JsonField& field, Arena& arena, JsonValues* values) {
  const auto one_of = [values](size_t count) { return count == 1 ? 0 : values->count % count; };
  if (field.type.dtype != DType::kString) {
    const size_t size = DTypeSize(field.type.dtype);
    const size_t one = one_of(field.default_numbers.size() / size);
    return AppendJsonNumber(field, field.default_numbers.data() + size * one, values);
  }
  const std::string& value = field.default_strings[one_of(field.default_strings.size())];
  const auto* const bytes = reinterpret_cast<const uint8_t*>(value.data());
  if (field.shape.empty()) {
    uint8_t* const to = StayingRoom::AllocateThereOr(arena, value.size());
    if (!value.empty()) std::memcpy(to, bytes, value.size());
    values->view = {to, value.size()};
  } else {
    values->bytes.insert(values->bytes.end(), bytes, bytes + value.size());
    values->sizes.push_back(static_cast<uint32_t>(value.size()));
  }
  ++values->count;
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

uint64_t JsonValuesBytes(const JsonValues& values) {
  uint64_t bytes = values.bytes.capacity() + values.sizes.capacity() * sizeof(uint32_t);
  for (const std::vector<int64_t>& splits : values.splits)
    bytes += splits.capacity() * sizeof(int64_t);
  return bytes;
}

int64_t EndJsonAxis(size_t level, JsonValues* values) {
  const int64_t items = level + 1 == values->splits.size()
                            ? static_cast<int64_t>(values->count)
                            : static_cast<int64_t>(values->splits[level + 1].size()) - 1;
  std::vector<int64_t>& splits = values->splits[level];
  const int64_t found = items - splits.back();
  splits.push_back(items);
  return found;
}

bool FillJsonValues(const JsonField& field, size_t level, Arena& arena, JsonValues* values) {
  if (level < field.list_axes) {
    if (!field.allow_missing) return false;
    (void)EndJsonAxis(level, values);
    return true;
  }
  if (!field.has_default()) return false;
  if (level == field.shape.size()) {
    PutDefault(field, arena, values);
    return true;
  }
  for (int64_t i = 0; i < field.shape[level]; ++i) {
    if (!FillJsonValues(field, level + 1, arena, values)) return false;
  }
  (void)EndJsonAxis(level, values);
  return true;
}

bool DefaultsFit(const JsonField& field, size_t level, const JsonValues& values) {
  if (level < field.list_axes || !field.has_default()) return true;
  // At most kMaxValues of the plan.
  uint64_t count = 1;
  for (size_t axis = level; axis < field.shape.size(); ++axis) count *= field.shape[axis];
  uint64_t bytes = DTypeSize(field.type.dtype);
  uint64_t used = values.count * bytes;
  if (field.type.dtype == DType::kString) {
    used = values.bytes.size() + values.sizes.size() * sizeof(uint32_t);
    for (const std::string& value : field.default_strings)
      bytes = std::max<uint64_t>(bytes, value.size() + sizeof(uint32_t));
  }
  return count <= (kMaxDefaultBytes - std::min(kMaxDefaultBytes, used)) / bytes;
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
