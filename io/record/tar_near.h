// Cuts the samples of a tar file out of bytes that lie in memory: what TarStream finds, without
// reading them first.
//
// Threads:  any; no state.
// Cost:     the head of each member. Data is not looked at. Cells get a sample without its heads
//           (tar_cell.h).
#pragma once

#include <cstdint>

#include "base/file.h"
#include "io/record/near_records.h"

namespace penstock {

// As NearRecords::CutNear.
NearRecords::Cut CutNearTar(RandomAccessFile& file, uint64_t offset, uint64_t bytes,
                            NearRecords::Take take);

}  // namespace penstock
