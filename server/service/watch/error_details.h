// What a program is to know of an error besides its code: a reason that stays the same, values, and
// the field of the request that is at fault. They travel in the status as payloads, and to a client
// of gRPC as google.rpc.ErrorInfo and BadRequest.
//
// Threads:  functions without state.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock {

// `reason`: in capitals. An OK status stays OK.
absl::Status WithReason(absl::Status status, absl::string_view reason);
// The path in the request.
absl::Status WithField(absl::Status status, absl::string_view field);

// A serialized google.rpc.Status. `pipeline`: its metadata, if it is not "". Without a reason of
// its own, an error has its code's name.
std::string ErrorDetails(const absl::Status& status, const std::string& message,
                         const std::string& pipeline);

}  // namespace penstock
