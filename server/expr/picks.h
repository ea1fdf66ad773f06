// NumPy's basic subscripts, transposition and broadcasting of tensors that are no fixed block of
// memory: of sizes that only the data tells, and of strings. Where a tensor is one, the same
// becomes a view.
//
// Threads:  while a program is compiled; the kernel is safe from any thread.
// Cost:     one copy of what is taken, in runs as long as they lie together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/expr/data_integers.h"
#include "server/expr/function.h"

namespace penstock::expr {

// What a subscript takes from one axis, or an axis of one element that it adds. All of an axis by
// default.
struct Pick {
  enum class Kind : uint8_t { kSlice, kIndex, kList, kNewAxis };

  Kind kind = Kind::kSlice;
  size_t axis = 0;  // of the tensor
  // kSlice, as written; `step` is not 0.
  std::optional<int64_t> start;
  std::optional<int64_t> stop;
  int64_t step = 1;
  // kIndex (one, whose axis is gone) and kList, as written.
  std::vector<int64_t> indices;
  // Which of the subscript's integers of the data stand in the place of `start`, `stop`, and the
  // index.
  std::optional<size_t> start_from;
  std::optional<size_t> stop_from;
  std::optional<size_t> index_from;

  bool of_data() const { return start_from || stop_from || index_from; }
};

// The elements of an axis that a slice takes.
struct Stretch {
  int64_t first = 0;
  int64_t step = 1;
  int64_t count = 0;
};

// Python's rules: negative bounds count from the end, and all are cut to the axis.
Stretch StretchOf(const Pick& slice, int64_t size);

// The axes of the result are those of the picks that are not indices, in their order. REQUIRES:
// each axis of `type` in one pick; indices that are inside of the sizes that are known. Another
// index outside of an axis is an error of its row. `integers`: of the data, which picks name; they
// stand behind the tensor in the arguments.
BoundRowFunction BindPicks(const TensorType& type, std::vector<Pick> picks,
                           DataIntegers integers = {});

// A kernel whose first argument is repeated to the shape to which all of them broadcast: `shape`,
// as far as it is known. Shapes that do not broadcast are an error of the row.
BoundRowFunction BindBroadcast(DType dtype, const Shape& shape);
// The same to the shape of the second argument.
BoundRowFunction BindBroadcastTo(DType dtype, const Shape& shape);

// Tells picks apart.
std::string PicksToString(absl::Span<const Pick> picks);

}  // namespace penstock::expr
