// What an exchange that went wrong means: whether to try again, and what is said. Nothing that is
// said holds a header, a query or a body: secrets stand there.
//
// Threads:  any; no state.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "io/http/curl_handle.h"

namespace penstock {

enum class Verdict : uint8_t {
  kGood,
  kAgain,      // it may pass: reset, cut, stalled, 5xx
  kSlower,     // the same, and the server says that it is too much (429, 503)
  kRefused,    // 401, 403: final, but for one more time with fresh credentials
  kElsewhere,  // a redirect
  kFinal,
};

struct Outcome {
  Verdict verdict = Verdict::kGood;
  absl::Status status;  // with `what` in it, not OK unless it is good
};

// `what`: what was asked for, as it may be shown.
Outcome JudgeTransfer(CURLcode code, const CurlRequest& kept, const std::string& what);
// The same of an answer with this status, which has come whole.
Outcome JudgeStatus(int status, const HttpResponse& response, const std::string& what);

}  // namespace penstock
