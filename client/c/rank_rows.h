// A part of the rows of a tensor that is not fixed, as a tensor of its own.
//
// Threads:  no state.
// Cost:     offsets and row splits are counted anew from 0: a copy of those of the part.
#pragma once

#include <cstdint>
#include <vector>

#include "client/c/penstock.h"

namespace penstock_client {

// Makes the tensor, whose `shape` shows all rows and may be written, that of `rows` rows from
// `first_row` on. False when an offset or a row split leads out of what it points into.
bool TakeRows(uint32_t first_row, uint32_t rows, penstock_tensor* tensor, int64_t* shape,
              std::vector<std::vector<int64_t>>* counted_anew);

}  // namespace penstock_client
