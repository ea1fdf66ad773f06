// How long a read may take (docs/decisions/0088-reads-that-hang.md), as a spec and the
// configuration state it.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "penstock/v1/pipeline.pb.h"
#include "penstock/v1/server.pb.h"

namespace penstock {

inline constexpr int64_t kMinReadDeadlineMs = 100;
inline constexpr int64_t kMaxReadDeadlineMs = 86'400'000;

// InvalidArgument, with the name of `field`, for what is neither 0 (none) nor within these.
absl::Status CheckReadDeadline(absl::string_view field, int64_t ms);

// That of a spec, checked or not, or else of the defaults; 0: none.
uint64_t ReadDeadlineNs(const v1::PipelineSpec& spec, const v1::WorkerDefaults& defaults);

}  // namespace penstock
