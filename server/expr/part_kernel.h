// A function over a part of an image, together with the function that makes the image: of a JPEG
// file that is cropped only the crop is decoded.
//
// Threads:  constant after construction; safe from any thread.
#pragma once

#include <memory>

#include "server/expr/row_kernel.h"

namespace penstock::expr {

// What `taker` makes of the image that `maker` makes of its `maker_arguments` arguments. They stand
// in front of those of `taker`, whose first is left out. REQUIRES: maker->NewPartReader() is not
// null; taker->takes_parts().
std::shared_ptr<const RowKernel> MakePartKernel(std::shared_ptr<const RowKernel> maker,
                                                size_t maker_arguments,
                                                std::shared_ptr<const RowKernel> taker);

bool IsPartKernel(const RowKernel& kernel);

}  // namespace penstock::expr
