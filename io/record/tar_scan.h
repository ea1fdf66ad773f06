// Finds the samples of a tar file that is sound, out of bytes that lie in memory: what TarStream
// finds, without copying what it passes over.
//
// Threads:  any; no state.
// Cost:     the head of each member.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "io/record/record_access.h"
#include "io/record/scan_progress.h"

namespace penstock {

// Of all bytes of a file, which may change meanwhile: who can see that they were another file's
// does not use what was found. Nothing where there is something to be decided (a damaged head, a
// member that is refused, a cut file, a sample longer than the limit): that is the stream's.
// Cancelled as ScanProgress says.
absl::StatusOr<std::optional<FoundRecords>> ScanSoundTar(absl::Span<const uint8_t> bytes,
                                                         ScanProgress& progress);

}  // namespace penstock
