// A choice by a comparison of two operands in memory: `where(x > 0, x, y)`.
//
// Flags in registers would cost a comparison, their widening, a test of them and half of the
// registers; here the comparison's mask is used where it is made.
//
// Threads:  as server/kernels/lane_program.h.
#pragma once

#include "server/kernels/arithmetic.h"

namespace penstock::kernels {

// accumulator = comparison(first, second) ? accumulator : third, or, if `reversed`, the other way
// round. The first operand has a cursor; it and the third are the instruction's two operands, the
// second is the operand of the instruction behind it, whose code is not run. Null for any lane but
// float32, for programs with 64-bit types, and for what is no comparison of sizes.
Handler FindChoice(Comparison comparison, bool reversed, Lane lane, Form form);

}  // namespace penstock::kernels
