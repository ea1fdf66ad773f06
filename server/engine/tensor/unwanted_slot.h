// Steps that a sink does not want: it claims them without memory, nothing is computed for them, and
// they are published as all others are. So who serves some steps of a stream runs the order of all
// of them.
#pragma once

#include "server/engine/tensor/batch_sink.h"

namespace penstock {

// ClaimedSlot::slot of such a step.
inline constexpr int kUnwantedSlot = -2;

inline bool IsUnwanted(const ClaimedSlot& slot) { return slot.slot == kUnwantedSlot; }

}  // namespace penstock
