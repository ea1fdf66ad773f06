// What a plan of a world leaves alone of the records of other hosts.
//
// Threads:  a function without state, while a plan is made.
#pragma once

#include "server/engine/order/dataset.h"
#include "server/engine/tensor/world.h"

namespace penstock {

// Where all that is computed are rows of steps, sources of records only locate them
// (RecordLoader::Locate()). Nothing where the host is alone.
void LeaveRecordsOfOthers(World world, Dataset& dataset);

}  // namespace penstock
