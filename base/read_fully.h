// Reads that are gone on with: what a file system may do to a read that is no error yet.
//
// Interrupted and short reads are invisible. A read that fails by EIO or EAGAIN, as network and
// loose disks do for a moment, is tried kReadTries times with growing pauses; then it is an error.
//
// Threads:  any; it has no state.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock {

inline constexpr int kReadTries = 3;
inline constexpr int64_t kFirstPauseNs = 2'000'000;  // then four times as long

// As pread does: the number of bytes, 0 at the end of the file, or -1 and errno.
using ReadCall = absl::FunctionRef<ssize_t(uint8_t* out, size_t bytes, uint64_t offset)>;
// Waits; a test counts instead.
using PauseCall = absl::FunctionRef<void(int64_t pause_ns)>;

// Fills `out` from `offset` on, up to the end of the file. Errors name `path` and the offset.
absl::StatusOr<size_t> ReadFully(const std::string& path, uint64_t offset, absl::Span<uint8_t> out,
                                 ReadCall read, PauseCall pause);

}  // namespace penstock
