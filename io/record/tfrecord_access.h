// TFRecords in any order: RecordAccess of their frames.
//
// Threads:  any.
#pragma once

#include "io/record/record_access.h"

namespace penstock {

const RecordAccess& TfrecordAccess();

}  // namespace penstock
