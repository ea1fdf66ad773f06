// Finds the samples of a tar file that is sound: what TarStream finds, without reading what it
// passes over.
//
// Threads:  any; no state.
// Cost:     the head of each member, of which those that lie close to each other are read with one
//           call.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "io/record/record_access.h"
#include "io/record/scan_progress.h"

namespace penstock {

// Nothing where there is something to be decided (a damaged head, a member that is refused, a cut
// file, a sample longer than the limit, a read that failed): that is the stream's. Cancelled as
// ScanProgress says.
absl::StatusOr<std::optional<FoundRecords>> ScanSoundTar(RandomAccessFile& file,
                                                         ScanProgress& progress);

}  // namespace penstock
