// A request whose answer is waited for: lists, heads, tokens. Not for a worker: it takes as long as
// the network does.
//
// Threads:  any, at the same time. It ends with Cancelled within about a second where the thread's
//           StopFlag says so.
// Cost:     a connection that is kept by this thread for the next one to the same server.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "io/http/http_error.h"
#include "io/http/http_message.h"

namespace penstock {

// Once. Whatever the server says is an answer; an error is one of the connection.
absl::StatusOr<HttpResponse> PerformOnce(const HttpRequest& request, const std::string& what);

struct PatientOptions {
  int tries = 8;
  int64_t first_pause_ms = 100;  // then twice as long, with full jitter
  int64_t longest_pause_ms = 5'000;
  bool takes_empty = false;  // 416 that says that the object has no bytes is an answer
};

// Until it is good or final. `make` makes the request of each try, and is told once where the last
// one was refused; refused is tried once more. `elsewhere` is shown a redirect, which is not
// followed.
absl::StatusOr<HttpResponse> PerformPatiently(
    const std::string& what, absl::FunctionRef<absl::StatusOr<HttpRequest>(bool refused)> make,
    const PatientOptions& options = {},
    absl::FunctionRef<void(const HttpResponse& redirect)> elsewhere = [](const HttpResponse&) {});

}  // namespace penstock
