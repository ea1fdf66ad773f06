// Calls to a disk that have not returned yet, as whoever watches a pipeline is told of them.
//
// Threads:  values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/pending_call.h"

namespace penstock {

// A call to a disk that a worker is in.
struct CallUnderWay {
  CallKind kind = CallKind::kRead;
  std::string doing;  // as CallSeen has it
  std::string path;
  uint64_t offset = 0;
  uint64_t ns = 0;  // that it has taken so far
};

// What takes so long is told.
inline constexpr uint64_t kSlowCallNs = 1'000'000'000;
// A worker whose call takes so long, or whose read takes as long as the deadline, is not waited for
// by who wants it to end.
inline constexpr uint64_t kHungCallNs = 4'000'000'000;
inline constexpr uint64_t kHungSyncNs = 60'000'000'000;
// How long that is for a call of this kind, where it is so long for a read.
uint64_t HungAfterNs(CallKind kind, uint64_t hung_read_ns);

// DeadlineExceeded, with the read's address.
absl::Status ReadDeadlineError(const CallUnderWay& read, uint64_t deadline_ns);
// The read that has taken longest; the write that has, or the wait until one is durable.
std::optional<CallUnderWay> OldestRead(const std::vector<CallUnderWay>& calls);
std::optional<CallUnderWay> OldestWrite(const std::vector<CallUnderWay>& calls);
// Of what is neither.
std::optional<CallUnderWay> OldestWork(const std::vector<CallUnderWay>& calls);

}  // namespace penstock
