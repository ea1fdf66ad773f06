#include "io/http/perform.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"

namespace penstock {
namespace {

int64_t Jitter(int64_t most) {
  thread_local std::mt19937_64 dice(std::random_device{}());
  return std::uniform_int_distribution<int64_t>(0, std::max<int64_t>(most, 1))(dice);
}

// Looked at by libcurl about once a second, and more often while bytes come.
int LookForStop(void*, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return IsStopped() ? 1 : 0;
}

constexpr int64_t kLookMs = 50;

void Pause(int64_t ms) {
  for (; ms > 0 && !IsStopped(); ms -= kLookMs)
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(ms, kLookMs)));
}

absl::Status StoppedStatus(const std::string& what) {
  return absl::CancelledError(absl::StrCat("not wanted any more (", what, ")"));
}

bool IsOfNoBytes(const HttpResponse& response) {
  const std::optional<ContentRange> range = ParseContentRange(response.Header("content-range"));
  return range && range->is_unsatisfied && range->total && *range->total == 0;
}

struct Exchange {
  Outcome outcome;
  HttpResponse response;
};

Exchange Do(const HttpRequest& request, const std::string& what) {
  InitCurl();
  thread_local CurlHandle curl(curl_easy_init());
  if (curl == nullptr) return {{Verdict::kFinal, absl::InternalError("libcurl has no memory")}, {}};
  curl_easy_reset(curl.get());
  CurlRequest kept;
  kept.request = request;
  Prepare(curl.get(), &kept);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, LookForStop);
  const CURLcode code = curl_easy_perform(curl.get());
  if (code == CURLE_ABORTED_BY_CALLBACK && IsStopped())
    return {{Verdict::kFinal, StoppedStatus(what)}, {}};
  Exchange done;
  done.outcome = JudgeTransfer(code, kept, what);
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  done.response = std::move(kept.response);
  done.response.status = static_cast<int>(status);
  return done;
}

}  // namespace

absl::StatusOr<HttpResponse> PerformOnce(const HttpRequest& request, const std::string& what) {
  Exchange done = Do(request, what);
  if (done.outcome.verdict != Verdict::kGood) return done.outcome.status;
  return std::move(done.response);
}

absl::StatusOr<HttpResponse> PerformPatiently(
    const std::string& what, absl::FunctionRef<absl::StatusOr<HttpRequest>(bool refused)> make,
    const PatientOptions& options, absl::FunctionRef<void(const HttpResponse&)> elsewhere) {
  bool was_refused = false;
  bool tells_refusal = false;  // who makes the next request has not heard of it yet
  int64_t pause_ms = options.first_pause_ms;
  for (int left = options.tries;; --left) {
    absl::StatusOr<HttpRequest> request = make(std::exchange(tells_refusal, false));
    if (!request.ok()) return request.status();
    Exchange done = Do(*request, what);
    if (done.outcome.verdict == Verdict::kGood)
      done.outcome = JudgeStatus(done.response.status, done.response, what);
    // Of an object without bytes there is no range (RFC 9110, 15.5.17): it is an answer.
    if (options.takes_empty && done.response.status == 416 && IsOfNoBytes(done.response))
      return std::move(done.response);
    switch (done.outcome.verdict) {
      case Verdict::kGood:
        return std::move(done.response);
      case Verdict::kRefused:
        if (was_refused) return done.outcome.status;
        was_refused = tells_refusal = true;
        continue;
      case Verdict::kAgain:
      case Verdict::kSlower:
        if (left <= 1) return done.outcome.status;
        Pause(Jitter(pause_ms));
        if (IsStopped()) return StoppedStatus(what);
        pause_ms = std::min(2 * pause_ms, options.longest_pause_ms);
        continue;
      case Verdict::kElsewhere:
        elsewhere(done.response);
        return done.outcome.status;
      case Verdict::kFinal:
        return done.outcome.status;
    }
  }
}

}  // namespace penstock
