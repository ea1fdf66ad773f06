#include "io/http/perform.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

int64_t Jitter(int64_t most) {
  thread_local std::mt19937_64 dice(std::random_device{}());
  return std::uniform_int_distribution<int64_t>(0, std::max<int64_t>(most, 1))(dice);
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
  const CURLcode code = curl_easy_perform(curl.get());
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
  int64_t pause_ms = options.first_pause_ms;
  for (int left = options.tries;; --left) {
    absl::StatusOr<HttpRequest> request = make(was_refused);
    if (!request.ok()) return request.status();
    Exchange done = Do(*request, what);
    if (done.outcome.verdict == Verdict::kGood)
      done.outcome = JudgeStatus(done.response.status, done.response, what);
    switch (done.outcome.verdict) {
      case Verdict::kGood:
        return std::move(done.response);
      case Verdict::kRefused:
        if (was_refused) return done.outcome.status;
        was_refused = true;
        continue;
      case Verdict::kAgain:
      case Verdict::kSlower:
        if (left <= 1) return done.outcome.status;
        std::this_thread::sleep_for(std::chrono::milliseconds(Jitter(pause_ms)));
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
