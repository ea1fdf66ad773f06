// Records that lie in a mapped file, copied before they are checked, since whoever can write the file may change its bytes at any time.
//
// Threads:  any; an Arena belongs to one.
#pragma once

#include <cstdint>

#include "server/base/arena.h"
#include "server/engine/record.h"

namespace penstock {

// A copy of the data of a record that lies in a map, and of the checksum behind them: to be checked there (DataHolds), after some
// others were copied, so that what is stored has arrived when it is loaded again.
const uint8_t* CopyMapped(const RecordRef& record, Arena& arena);

}  // namespace penstock
