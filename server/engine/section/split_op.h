// Split ops: where the values of an element decide how the sequence goes on. They turn each element
// into any number of others.
//
// Threads: constant after construction; Run() is safe from any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "base/arena.h"
#include "base/column.h"
#include "base/signature.h"

namespace penstock {

// What became of a block of rows.
struct Split {
  // Of all new elements, one after another: how many each row made.
  absl::Span<uint32_t> counts;
  // The sequence ends behind the elements counted so far.
  bool ends = false;
};

class SplitOp {
 public:
  virtual ~SplitOp() = default;

  // The features of one new element.
  virtual const Signature& output() const = 0;

  // As WorkOp::draws().
  virtual bool draws() const { return false; }
  // How many every element makes, whatever its values; absent where that differs or is not known.
  virtual std::optional<uint64_t> elements_of_each() const { return std::nullopt; }
  bool one_to_one() const { return elements_of_each() == 1; }
  // How many rows one task takes together; absent: as many as their types say are little work.
  virtual std::optional<uint32_t> block_rows() const { return std::nullopt; }
  // Whether an element makes those that lie along its first axis, in their order.
  virtual bool makes_rows() const { return false; }

  // Sets split->counts[r] for every row; `out` receives a column for each feature, of all new
  // elements in their order. Columns may be views of `in` or memory of `arena`. A row that fails is
  // the lowest of its kind.
  virtual RowStatus Run(int rows, absl::Span<const Column> in, Split* split, absl::Span<Column> out,
                        Arena& arena) const = 0;
};

// Those rows of a column of that type, as views.
Column SelectRows(const TensorType& type, const Column& column, absl::Span<const uint32_t> rows,
                  Arena& arena);

}  // namespace penstock
