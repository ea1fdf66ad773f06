// Where the parts of tensors lie in a slot's variable memory: one after another, each aligned and
// followed by bytes that may be overwritten (ring/layout.h).
#pragma once

#include <algorithm>
#include <cstdint>

#include "server/engine/tensor/joined_tensor.h"

namespace penstock {

// Where a part may begin, behind one that ends at `end`.
inline uint64_t NextPart(uint64_t end) {
  constexpr uint64_t kAlignment = 64, kPadding = 64;
  return std::min((end + kPadding + kAlignment - 1) / kAlignment * kAlignment,
                  JoinedTensor::kTooMany);
}

}  // namespace penstock
