// The values of one field of a document: gathered one after another, and then a row of its column.
//
// Threads:  any; no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/arena.h"
#include "base/column.h"
#include "server/codec/json_fields.h"

namespace penstock {

// The values of one field of the document at hand.
struct JsonValues {
  size_t count = 0;
  uint8_t* to = nullptr;                     // of dense fields: the row
  RowBytes view;                             // of a string scalar
  std::vector<uint8_t> bytes;                // of others: values of numbers, or bytes of strings
  std::vector<uint32_t> sizes;               // of strings
  std::vector<std::vector<int64_t>> splits;  // of each axis
};

// Nothing is found yet. `to`: where the row of a dense field goes. Memory that a large document
// took is given back.
void ClearJsonValues(const JsonField& field, uint8_t* to, JsonValues* values);

// Memory that the lists take.
uint64_t JsonValuesBytes(const JsonValues& values);

// One more of a field of numbers: DTypeSize() bytes.
inline void AppendJsonNumber(const JsonField& field, const uint8_t* value, JsonValues* values) {
  const size_t size = DTypeSize(field.type.dtype);
  if (values->to == nullptr) {
    values->bytes.insert(values->bytes.end(), value, value + size);
  } else if (values->count < field.row_values) {
    // Of too many the rest is only counted.
    std::memcpy(values->to + values->count * size, value, size);
  }
  ++values->count;
}

// A row of the axis ends. Returns what it holds: values, or rows of the axis in it.
int64_t EndJsonAxis(size_t level, JsonValues* values);

// Puts empty lists and defaults in the place of what is not there: the axes from `level` on, and
// what they hold. False: the field allows neither.
bool FillJsonValues(const JsonField& field, size_t level, Arena& arena, JsonValues* values);

// Whether the defaults that FillJsonValues() would add, with what the document has, are at most
// kMaxDefaultBytes: a null of some bytes may stand for a row of millions of values, and a document
// may have millions of nulls.
constexpr uint64_t kMaxDefaultBytes = uint64_t{1} << 30;
bool DefaultsFit(const JsonField& field, size_t level, const JsonValues& values);

// A row of a field that is not dense, in the arena. `dims`: the sizes of its axes, unless it is
// packed.
void MakeJsonRow(const JsonField& field, const JsonValues& values, Arena& arena, RowBytes* row,
                 int64_t* dims);

}  // namespace penstock
