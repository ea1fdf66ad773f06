// Asks a daemon to create, validate or delete a pipeline: the client's side of a request about a spec (ring/attach.h).
//
// Threads:  any; no state.
// Owns:     its connection, which ends with the call.
// Limits:   a spec of at most 1 MiB, as the daemon has it.
// Cost:     one connection; blocks until the daemon has answered.
#pragma once

#include <string>
#include <string_view>

#include "ring/attach.h"
#include "ring/status.h"

namespace penstock_client {

// `answer`: JSON of a ValidatePipelineResponse (control.proto); "" of a delete.
penstock::ring::Status RequestSpec(const std::string& socket_path,
                                   penstock::ring::Operation operation, std::string_view name,
                                   std::string_view spec, std::string* answer);

}  // namespace penstock_client
