#include "io/http/http_error.h"

#include <cstdlib>
#include <ctime>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// "<Code>SlowDown</Code>" of an S3 server's error; only letters and digits, so that nothing else gets into a message.
std::string CodeIn(const std::string& body) {
  const size_t begin = body.find("<Code>");
  if (begin == std::string::npos) return "";
  const size_t end = body.find("</Code>", begin);
  if (end == std::string::npos || end - begin > 60) return "";
  const std::string code = body.substr(begin + 6, end - begin - 6);
  for (const char letter : code)
    if (!absl::ascii_isalnum(letter)) return "";
  return absl::StrCat(", ", code);
}

// How far this machine's clock is ahead of the server's; absent where the server does not say what time it is.
std::optional<int64_t> AheadS(const HttpResponse& response) {
  const std::string date(response.Header("date"));
  const time_t theirs = date.empty() ? -1 : curl_getdate(date.c_str(), nullptr);
  if (theirs < 0) return std::nullopt;
  return int64_t{time(nullptr)} - int64_t{theirs};
}

// S3 takes no signature that is older, or newer.
constexpr int64_t kSkewMaxS = 15 * 60;

std::string ShownSkew(int64_t ahead_s) {
  return absl::StrCat("this machine's clock is ", std::abs(ahead_s), " seconds ",
                      ahead_s < 0 ? "behind" : "ahead of", " the server's: set it: ");
}

}  // namespace

Outcome JudgeStatus(int status, const HttpResponse& response, const std::string& what) {
  if (status >= 200 && status < 300) return {};
  const std::string code = CodeIn(response.body);
  const std::string said = absl::StrCat("HTTP ", status, code, " (", what, ")");
  // An answer to HEAD has no body that would say so, and other credentials would not help.
  const std::optional<int64_t> ahead_s = status == 403 ? AheadS(response) : std::nullopt;
  const bool is_skewed = ahead_s && std::abs(*ahead_s) > kSkewMaxS;
  if (status == 403 && code == ", RequestTimeTooSkewed") {
    return {
        Verdict::kFinal,
        absl::PermissionDeniedError(absl::StrCat(
            is_skewed ? ShownSkew(*ahead_s) : "this machine's clock is wrong: set it: ", said))};
  }
  // S3 calls what has ended a bad request.
  if (status == 400 && (code == ", ExpiredToken" || code == ", TokenRefreshRequired")) {
    return {Verdict::kRefused,
            absl::PermissionDeniedError(absl::StrCat("the credentials have ended: ", said))};
  }
  switch (status) {
    case 401:
    case 403:
      return {Verdict::kRefused,
              absl::PermissionDeniedError(absl::StrCat(
                  "the server refuses it: ",
                  is_skewed ? ShownSkew(*ahead_s)
                            : "look at the credentials, the clock and the rights of their owner: ",
                  said))};
    case 404:
    case 410:
      return {Verdict::kFinal,
              absl::NotFoundError(absl::StrCat("there is no such object: ", said))};
    case 409:
    case 412:
      return {Verdict::kFinal,
              absl::FailedPreconditionError(
                  absl::StrCat("the object was replaced since the pipeline was created: ", said))};
    case 416:
      return {Verdict::kFinal, absl::FailedPreconditionError(absl::StrCat(
                                   "the object is shorter than when it was listed: ", said))};
    case 408:
    case 425:
      return {Verdict::kAgain, absl::UnavailableError(said)};
    case 429:
    case 503:
      return {Verdict::kSlower, absl::UnavailableError(said)};
    default:
      break;
  }
  // A bucket of another region, whose server cannot check the signature.
  if (status == 400 && !response.Header("x-amz-bucket-region").empty()) {
    return {Verdict::kElsewhere,
            absl::InvalidArgumentError(
                absl::StrCat("the server does not take the request; the bucket may lie in another "
                             "region: ",
                             said))};
  }
  // What S3 says of a token that has ended where it is asked for the head alone, which has no text.
  if (status == 400 && response.body.empty()) {
    return {Verdict::kRefused,
            absl::InvalidArgumentError(absl::StrCat(
                "the server does not take the request; the credentials may have ended: ", said))};
  }
  if (status >= 500) return {Verdict::kAgain, absl::UnavailableError(said)};
  if (status >= 300 && status < 400) {
    return {Verdict::kElsewhere,
            absl::FailedPreconditionError(absl::StrCat(
                "the server sends readers elsewhere, which is not followed: name that place, or "
                "the bucket's region: ",
                said))};
  }
  return {Verdict::kFinal,
          absl::InvalidArgumentError(absl::StrCat("the server does not take the request: ", said))};
}

Outcome JudgeTransfer(CURLcode code, const CurlRequest& kept, const std::string& what) {
  if (code == CURLE_OK) return {};
  const std::string said = absl::StrCat(curl_easy_strerror(code), " (", what, ")");
  if (kept.was_refused) {
    return {
        Verdict::kFinal,
        absl::PermissionDeniedError(absl::StrCat(
            "the address leads to this machine, a link-local network or a metadata service, "
            "which a spec may not name unless the daemon's remote { allow_local } has its prefix (",
            what, ")"))};
  }
  if (kept.body_is_too_long) {
    return {Verdict::kFinal,
            absl::ResourceExhaustedError(absl::StrCat(
                "the answer is longer than ", kept.request.body_bytes_max, " bytes (", what, ")"))};
  }
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
      return {
          Verdict::kFinal,
          absl::PermissionDeniedError(absl::StrCat(
              "the server's certificate does not hold: name its authorities by SSL_CERT_FILE, or "
              "its right name: ",
              said))};
    case CURLE_COULDNT_RESOLVE_HOST:
      return {Verdict::kAgain,
              absl::UnavailableError(absl::StrCat(
                  "no name server knows the server's name: look at the address, and at the name "
                  "servers: ",
                  said))};
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return {Verdict::kFinal, absl::InvalidArgumentError(said)};
    default:
      return {Verdict::kAgain, absl::UnavailableError(said)};
  }
}

}  // namespace penstock
