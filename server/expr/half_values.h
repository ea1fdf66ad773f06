// Values of float16 and bfloat16, which nothing is computed in, as float32, which holds each of
// them.
//
// Threads:  binding while a program is compiled; the kernel is safe from any thread.
#pragma once

#include "server/expr/function.h"

namespace penstock::expr {

bool IsHalf(DType dtype);

// The same values as float32. REQUIRES: IsHalf(type.dtype).
BoundRowFunction WidenHalves(const TensorType& type);

}  // namespace penstock::expr
