// Split ops that say how many elements one task of their section takes, where the types of these tell little of their work.
//
// Threads: as any SplitOp.
#pragma once

#include <cstdint>

#include "server/engine/section/split_op.h"

namespace penstock {

class SizedSplitOp : public SplitOp {
 public:
  // At least 1.
  virtual uint32_t block_rows() const = 0;
};

}  // namespace penstock
