// What the system says of a file, as a status: as absl's, but what absl knows no code for has one.
//
// Threads:  functions without state.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace penstock {

// `what` names the path. ELOOP: FailedPrecondition, since somebody has to mend the links. EMFILE:
// ResourceExhausted with the limit.
absl::Status FileError(int error, const std::string& what);

// InvalidArgument for an address with a scheme, such as s3://bucket/key, in the place of a path of
// this machine.
absl::Status CheckNoAddress(const std::string& path);
bool IsAddress(const std::string& path);

// Of an open(), stat() or glob that has failed for `path`: where that is an address,
// CheckNoAddress() says so.
absl::Status CannotOpen(int error, const std::string& path);

}  // namespace penstock
