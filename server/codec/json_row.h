// The values of one field of a document, as a row of its column.
//
// Threads:  any; no state.
#pragma once

#include <cstdint>

#include "base/arena.h"
#include "base/column.h"
#include "server/codec/json_fields.h"

namespace penstock {

struct JsonValues;

// Nothing is found yet. `to`: where the row of a dense field goes. Memory that a large document took is given back.
void ClearJsonValues(const JsonField& field, uint8_t* to, JsonValues* values);

// A row of a field that is not dense, in the arena. `dims`: the sizes of its axes, unless it is packed.
void MakeJsonRow(const JsonField& field, const JsonValues& values, Arena& arena, RowBytes* row,
                 int64_t* dims);

}  // namespace penstock
