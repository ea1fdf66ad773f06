// Calls to a disk that have not returned yet, as whoever watches a pipeline is told of them.
//
// Threads:  values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace penstock {

// A call to a disk that a worker is in.
struct ReadUnderWay {
  std::string doing;  // "reading", "opening", "listing"
  std::string path;
  uint64_t offset = 0;
  uint64_t ns = 0;  // that it has taken so far
};

// What takes so long is told.
inline constexpr uint64_t kSlowReadNs = 1'000'000'000;
// A worker whose read takes so long, or as long as the deadline, is not waited for by who wants it to end.
inline constexpr uint64_t kHungReadNs = 4'000'000'000;

// DeadlineExceeded, with the read's address.
absl::Status ReadDeadlineError(const ReadUnderWay& read, uint64_t deadline_ns);
// The one of them that has taken longest.
std::optional<ReadUnderWay> OldestOf(std::vector<ReadUnderWay> reads);

}  // namespace penstock
