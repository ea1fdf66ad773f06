// Fills rows of unlike shapes up to one shape, as `padded_batch` does.
//
// Threads: functions without state.
// Cost:    one pass over the result, and one memcpy for each innermost run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/column.h"
#include "base/signature.h"
#include "server/engine/tensor/batch_form.h"

namespace penstock {

// DataLoss when a row of shape `row` does not fit into `shape`, of as many axes.
absl::Status CheckFits(const std::string& name, const Shape& row, const Shape& shape);

// Fills `bytes` with copies of one element; zeros where `padding` is empty.
void FillWith(const std::string& padding, size_t bytes, uint8_t* to);

// Calls run(from, to, count) for each innermost run of elements that a row of shape `from` has in a
// row of shape `to`. REQUIRES: no size of `from` is larger.
void VisitRuns(const Shape& from, const Shape& to,
               absl::FunctionRef<void(size_t from, size_t to, size_t count)> run);

// Lays `rows` rows of numbers one after another into `to`, each padded to layout.shape. REQUIRES:
// that is known, and `to` has room for as much.
RowStatus PadRows(const std::string& name, const RowLayout& layout, const Column& column,
                  uint32_t rows, uint8_t* to);

}  // namespace penstock
