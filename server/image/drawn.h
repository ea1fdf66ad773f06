// Functions whose result has the image's type and shape, and depends on the image and on what is
// drawn for its row.
//
// Threads:  safe from any thread.
#pragma once

#include <functional>

#include "server/expr/draws.h"
#include "server/expr/function.h"
#include "server/image/pixels.h"
#include "server/image/turn.h"

namespace penstock::expr {

// The arguments `lower` and `upper` of what is drawn evenly between them, 0 <= lower < upper.
absl::Status ReadBounds(const Argument& lower_argument, const Argument& upper_argument,
                        double* lower, double* upper);

// Writes what becomes of one image, whose shape has been set.
using DrawnFunction = std::function<absl::Status(Draws& draws, const RowValue& image,
                                                 Arena& scratch, RowOutput& out)>;

// The same of an image that comes in tiles.
using DrawnFilter = std::function<std::unique_ptr<TileFilter>(Draws& draws, const Shape& image,
                                                              Arena& scratch, RowOutput& out)>;

// `filter` may be null.
BoundRowFunction BindDrawn(const TensorType& image, const Argument& seed, DrawnFunction run,
                           DrawnFilter filter = nullptr);

// The same of a map of pixels that is drawn.
BoundRowFunction BindDrawnPixels(const TensorType& image, const Argument& seed, int64_t channels,
                                 std::function<PixelMap(Draws& draws)> draw);

// The image, or what `turn` makes of it, with a probability of one half each. `turn` does not swap
// the axes.
BoundRowFunction BindDrawnTurn(const TensorType& image, const Argument& seed, const Turn& turn);

}  // namespace penstock::expr
