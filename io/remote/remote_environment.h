// What a process' environment says of addresses. A daemon's environment is its administrator's, as
// its configuration is.
//
//     PENSTOCK_REMOTE_ALLOW     prefixes of addresses that specs may name, with spaces between
//                               them: "s3://bucket/train/ https://data.example/"; "*": all; "none":
//                               none. Default: all for a process' own daemon, none for any other
//     PENSTOCK_REMOTE_LOCAL     prefixes that may lead to this machine or to link-local addresses
//                               as well
//     PENSTOCK_REMOTE_MEMORY    bytes of memory for what is near; 16 MiB to 1 TiB. Default:
//                               536870912, or an eighth of the memory that the process may still
//                               take where that is less
//     PENSTOCK_REMOTE_PROXY     "http://host:port"
//     PENSTOCK_REMOTE_CACHE     a folder for what was fetched, absolute. Default: none
//     SSL_CERT_FILE             certificates of authorities, in the place of the system's
//                               (io/remote/authorities.h)
//     AWS_…, GOOGLE_…           credentials, regions and endpoints, as the providers' own tools
//                               take them (io/credentials)
//
// Threads:  any.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "io/credentials/environment.h"
#include "io/remote/remote_options.h"

namespace penstock {

// `has_owner`: the process' own daemon, which may also read what its machine serves.
// `memory_bytes`: what the process may still take, by its control group too (ring/memory_limit.h).
// InvalidArgument names the variable.
absl::StatusOr<RemoteOptions> RemoteOptionsOf(const Environment& environment, bool has_owner,
                                              uint64_t memory_bytes = UINT64_MAX);

// What RemoteOptions::memory_bytes is where nothing says otherwise and a process may still take so
// much.
uint64_t DefaultRemoteMemory(uint64_t memory_bytes);

}  // namespace penstock
