// What a daemon's configuration says of files at addresses (RemoteFileOptions).
//
// Threads:  any; no state.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/credentials/environment.h"
#include "io/remote/remote_options.h"
#include "penstock/v1/server.pb.h"

namespace penstock {

// InvalidArgument names the field; no value of one that may hold a secret is in it.
absl::Status CheckRemote(const v1::RemoteFileOptions& remote);

// As the configuration says or, where it has no remote { }, the environment. `has_owner`: the
// daemon of one process. `memory_bytes`: what it may still take. REQUIRES: CheckRemote().
absl::StatusOr<RemoteOptions> RemoteOptionsOf(const v1::DaemonConfig& config,
                                              const Environment& environment, bool has_owner,
                                              uint64_t memory_bytes = UINT64_MAX);

}  // namespace penstock
