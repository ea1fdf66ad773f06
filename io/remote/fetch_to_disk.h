// Fills a cache folder with objects before anybody reads them (disk_cache.h).
//
// Threads:  FetchToDisk() waits, and calls `progress` from its own thread. It ends early where the StopFlag of that thread says so; what has come
//           stays.
// Limits:   64 blocks of 8 MiB at a time, or as many as fit RemoteOptions::memory_bytes.
// Cost:     what is in the folder already is read from there, and fetched anew only where it does not hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "io/credentials/environment.h"
#include "io/remote/remote_options.h"

namespace penstock {

struct FetchedObject {
  std::string path;
  uint64_t bytes = 0;
  uint64_t fetched_bytes = 0;  // by the network
  uint64_t kept_bytes = 0;     // are in the folder now; fewer than `bytes` where it has no room
  bool has_tag = true;         // false: the server does not name its state, so that nothing is kept
  absl::Status status;         // of what could not be fetched
};

// `done` of `total` bytes are there, of which `fetched` have come by the network; `path` came last.
using FetchProgress = absl::FunctionRef<void(uint64_t done, uint64_t fetched, uint64_t total,
                                             const std::string& path)>;

// What `patterns` name, in the byte order of its paths. REQUIRES: a cache_folder in `options`. An error: nothing was fetched.
absl::StatusOr<std::vector<FetchedObject>> FetchToDisk(const std::vector<std::string>& patterns,
                                                       const RemoteOptions& options,
                                                       Environment environment,
                                                       FetchProgress progress);

}  // namespace penstock
