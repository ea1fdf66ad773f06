#include "server/service/stream/read_deadline.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/nanoseconds.h"

namespace penstock {

absl::Status CheckReadDeadline(absl::string_view field, int64_t ms) {
  if (ms == 0 || (ms >= kMinReadDeadlineMs && ms <= kMaxReadDeadlineMs)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " out of range: ", ms,
                                                 " is not 0 (none) or in [", kMinReadDeadlineMs,
                                                 ", ", kMaxReadDeadlineMs, "]"));
}

uint64_t ReadDeadlineNs(const v1::PipelineSpec& spec, const v1::WorkerDefaults& defaults) {
  const int64_t ms =
      spec.has_read_deadline_ms() ? spec.read_deadline_ms() : defaults.read_deadline_ms();
  return static_cast<uint64_t>(std::clamp<int64_t>(ms, 0, kMaxReadDeadlineMs)) * kNsPerMs;
}

}  // namespace penstock
