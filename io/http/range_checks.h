// Whether the head of an answer is that of the range that was asked for, of the object as it was
// listed.
//
// Threads:  any; no state.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "io/http/range_fetcher.h"

namespace penstock {

// `response`: its head, with a status of 200 to 299. FailedPrecondition where the object is another
// one; Unimplemented where the server gives no ranges.
absl::Status CheckRange(const HttpResponse& response, const ObjectState& state, uint64_t offset,
                        uint64_t bytes, const std::string& what);

}  // namespace penstock
