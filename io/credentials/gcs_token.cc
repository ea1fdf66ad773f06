#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "io/credentials/gcs_sources.h"
#include "io/credentials/json_text.h"
#include "io/http/perform.h"

namespace penstock {

absl::StatusOr<Credentials> ParseOauthToken(const std::string& text, const std::string& what,
                                            int64_t now_s) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  Credentials found;
  found.source = what;
  found.bearer = JsonText(json, "access_token");
  if (json.is_object() && json.contains("expires_in") && json["expires_in"].is_number())
    found.expires_s = now_s + json["expires_in"].get<int64_t>();
  for (const char letter : found.bearer) {
    // It becomes a header.
    if (letter < ' ' || letter > '~') found.bearer.clear();
    if (found.bearer.empty()) break;
  }
  if (found.bearer.empty()) {
    return absl::DataLossError(absl::StrCat(what, ": expected JSON with access_token, found ",
                                            text.size(), " bytes of something else"));
  }
  return found;
}

absl::StatusOr<Credentials> AskForToken(const Environment& environment, const std::string& server,
                                        const std::string& form, const std::string& what) {
  const int64_t now_s = absl::ToUnixSeconds(absl::Now());
  HttpRequest request;
  request.method = "POST";
  request.url = server;
  request.reach = Reach::kAnywhere;
  request.authorities = environment.authorities;
  request.headers = {"Content-Type: application/x-www-form-urlencoded"};
  request.body = form;
  const absl::StatusOr<HttpResponse> response =
      PerformPatiently(what, [&request](bool) { return request; });
  if (!response.ok()) return response.status();
  return ParseOauthToken(response->body, what, now_s);
}

}  // namespace penstock
