#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "io/credentials/gcs_sources.h"
#include "io/http/perform.h"
#include "io/http/uri_encode.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

constexpr char kWhat[] = "authorised user";

}  // namespace

absl::StatusOr<Credentials> GcsFromAuthorisedUser(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto field = [&json](const char* name) -> std::string {
    return json.is_object() && json.contains(name) && json[name].is_string()
               ? json[name].get<std::string>()
               : "";
  };
  const std::string server =
      field("token_uri").empty() ? "https://oauth2.googleapis.com/token" : field("token_uri");
  if (field("refresh_token").empty())
    return absl::InvalidArgumentError("expected refresh_token of an authorised user");
  const int64_t now_s = absl::ToUnixSeconds(absl::Now());
  HttpRequest request;
  request.method = "POST";
  request.url = server;
  request.reach = Reach::kAnywhere;
  request.headers = {"Content-Type: application/x-www-form-urlencoded"};
  request.body =
      absl::StrCat("grant_type=refresh_token&client_id=", EncodeQuery(field("client_id")),
                   "&client_secret=", EncodeQuery(field("client_secret")),
                   "&refresh_token=", EncodeQuery(field("refresh_token")));
  const absl::StatusOr<HttpResponse> response =
      PerformPatiently(kWhat, [&request](bool) { return request; });
  if (!response.ok()) return response.status();
  return ParseOauthToken(response->body, kWhat, now_s);
}

}  // namespace penstock
