// What a plan's order says of itself as a whole, by the nodes of its ops.
//
// Threads: functions without state.
#pragma once

#include "server/engine/order/dataset.h"

namespace penstock {

// Whether values decide which elements there are, or where a section ends that only its values can
// count.
bool DecidedByValues(const OrderNode& node);

// The dearest way in which one of its ops goes on from a cursor.
CursorClass WorstClass(const OrderNode& node);

}  // namespace penstock
