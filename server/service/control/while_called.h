// What ends the work of a call: its caller has gone, or it has taken too long.
//
// Threads:  any; no state.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "server/service/stream/within_deadline.h"

namespace penstock {

// How long the check of a spec or the making of a pipeline may go through its files.
inline constexpr absl::Duration kPlanTime = absl::Hours(1);

// Until the caller has gone, or so much time has passed; `what`: for the error. The context must
// outlive the call that looks.
inline Unwanted WhileCalled(const grpc::ServerContext* context, absl::Duration limit,
                            const std::string& what) {
  return [context, limit, what, end = absl::Now() + limit]() -> absl::Status {
    if (context->IsCancelled()) return absl::CancelledError("the caller has gone");
    if (absl::Now() < end) return absl::OkStatus();
    return absl::DeadlineExceededError(
        absl::StrCat(what, " took longer than ", absl::FormatDuration(limit)));
  };
}

}  // namespace penstock
