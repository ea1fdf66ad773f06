// A function that takes its image tile by tile, together with the function that makes the image:
// what lies between the two stays in L1 instead of going through memory.
//
// Threads:  constant after construction; safe from any thread.
#pragma once

#include <memory>

#include "server/expr/row_kernel.h"

namespace penstock::expr {

// What `taker` makes of the image, of shape `image`, that `maker` makes of its `maker_arguments`
// arguments. They stand in front of those of `taker`, whose first is left out. REQUIRES:
// taker->takes_tiles().
std::shared_ptr<const RowKernel> MakeTileKernel(std::shared_ptr<const RowKernel> maker,
                                                size_t maker_arguments, const Shape& image,
                                                std::shared_ptr<const RowKernel> taker);

// The maker of a kernel that MakeTileKernel() made; null of any other.
const RowKernel* TileMaker(const RowKernel& kernel);

}  // namespace penstock::expr
