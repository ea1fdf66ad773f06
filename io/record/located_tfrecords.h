// TFRecords most of which are for others to compute: small ones, too, are only located, as long
// ones are, where their file is in memory. Whoever computes one copies and checks its bytes, and
// finds the damage of its data.
//
// Threads:  as RecordFormat.
#pragma once

#include <memory>

#include "io/record/record_format.h"

namespace penstock {

// TfrecordFormat() in everything but the reads of plain files (engine/read/read_queue.h), which ask
// RecordFormat::are_located().
const std::shared_ptr<const RecordFormat>& LocatedTfrecords();

}  // namespace penstock
