#include "server/engine/calls_under_way.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {

absl::Status ReadDeadlineError(const ReadUnderWay& read, uint64_t deadline_ns) {
  constexpr uint64_t kNsPerMs = 1'000'000;
  return absl::DeadlineExceededError(
      absl::StrCat(read.doing, " did not return within read_deadline_ms: ", read.ns / kNsPerMs,
                   " > ", deadline_ns / kNsPerMs, " ms; a disk or network hangs (", read.path,
                   ", offset ", read.offset, ")"));
}

std::optional<ReadUnderWay> OldestOf(std::vector<ReadUnderWay> reads) {
  const auto oldest =
      std::max_element(reads.begin(), reads.end(),
                       [](const ReadUnderWay& a, const ReadUnderWay& b) { return a.ns < b.ns; });
  if (oldest == reads.end()) return std::nullopt;
  return std::move(*oldest);
}

}  // namespace penstock
