// The form of a row function whose rows cost less than the call for one of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "server/expr/row_kernel.h"

namespace penstock::expr {

// A kernel of one argument that can do all rows of a block at once, where their sizes are known.
// Run() serves the others.
class BlockKernel : public RowKernel {
 public:
  // The argument's rows have `in_bytes` bytes and lie `in_stride` bytes apart (0: they are one);
  // the results go side by side to `out`, and nothing behind them is touched.
  virtual void RunRows(const uint8_t* in, size_t in_stride, size_t in_bytes, int rows,
                       uint8_t* out) const = 0;
};

}  // namespace penstock::expr
