// Flips, turns and the transposition of an image: its pixels in another order.
//
// Threads:  safe from any thread.
// Cost:     one pass; a quarter turn reads the image column by column.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "server/expr/function.h"

namespace penstock::expr {

// The pixel (y, x) of the result is the image's (y, x), or (x, y) if `swap_axes`; counted from the
// end of the image's axes that are flipped.
struct Turn {
  bool swap_axes = false;
  bool flip_rows = false;     // of the image: up and down
  bool flip_columns = false;  // of the image: left and right
};

// Whether rows of pixels stay rows, in their order.
constexpr bool KeepsRows(const Turn& turn) { return !turn.swap_axes && !turn.flip_rows; }
// The turn of an image that comes in tiles. REQUIRES: KeepsRows().
std::unique_ptr<TileFilter> NewTurnFilter(const Turn& turn, DType dtype, const Shape& image,
                                          Arena& scratch, RowOutput& out);

// Writes what becomes of one image, whose shape has been set.
void RunTurn(const Turn& turn, DType dtype, const RowValue& image, RowOutput& out);

absl::StatusOr<BoundRowFunction> BindTurn(const TensorType& image, const Turn& turn);

}  // namespace penstock::expr
