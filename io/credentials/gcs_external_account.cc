#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "io/credentials/gcs_sources.h"
#include "io/http/perform.h"
#include "io/http/uri_encode.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

constexpr char kWhat[] = "external account";
constexpr char kScope[] = "https://www.googleapis.com/auth/cloud-platform";

using Json = nlohmann::json;

std::string Field(const Json& json, const char* name) {
  return json.is_object() && json.contains(name) && json[name].is_string()
             ? json[name].get<std::string>()
             : "";
}

// The token of another party, as text or in a field of JSON.
absl::StatusOr<std::string> SubjectToken(const Environment& environment, const Json& source) {
  const std::string path = Field(source, "file");
  if (path.empty()) {
    return absl::UnimplementedError(
        "credential_source: expected file; AWS, URLs and programs are not read");
  }
  const absl::StatusOr<std::string> text = environment.read_file(path);
  if (!text.ok()) return absl::InvalidArgumentError(absl::StrCat("cannot read ", path));
  const Json format = source.contains("format") ? source["format"] : Json();
  if (Field(format, "type") != "json") return std::string(absl::StripAsciiWhitespace(*text));
  const Json parsed = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const std::string token = Field(parsed, Field(format, "subject_token_field_name").c_str());
  if (token.empty()) return absl::DataLossError(absl::StrCat("no token in ", path));
  return token;
}

// The token of a service account in the place of the federated one.
absl::StatusOr<Credentials> Impersonate(const std::string& url, const Credentials& federated) {
  HttpRequest request;
  request.method = "POST";
  request.url = url;
  request.reach = Reach::kAnywhere;
  request.headers = {"Content-Type: application/json",
                     absl::StrCat("Authorization: Bearer ", federated.bearer)};
  request.body = Json{{"scope", {kScope}}}.dump();
  const absl::StatusOr<HttpResponse> response =
      PerformPatiently(kWhat, [&request](bool) { return request; });
  if (!response.ok()) return response.status();
  const Json json = Json::parse(response->body, nullptr, /*allow_exceptions=*/false);
  absl::StatusOr<Credentials> found =
      ParseOauthToken(Json{{"access_token", Field(json, "accessToken")}}.dump(), kWhat, 0);
  if (found.ok()) found->expires_s = ParseExpiry(Field(json, "expireTime"));
  return found;
}

}  // namespace

absl::StatusOr<Credentials> GcsFromExternalAccount(const Environment& environment,
                                                   const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const Json source = json.is_object() && json.contains("credential_source")
                          ? json["credential_source"]
                          : Json::object();
  const absl::StatusOr<std::string> token = SubjectToken(environment, source);
  if (!token.ok()) return token.status();
  const std::string server = Field(json, "token_url");
  if (server.empty() || Field(json, "audience").empty())
    return absl::InvalidArgumentError("expected audience and token_url of an external account");
  const int64_t now_s = absl::ToUnixSeconds(absl::Now());
  HttpRequest request;
  request.method = "POST";
  request.url = server;
  request.reach = Reach::kAnywhere;
  request.headers = {"Content-Type: application/x-www-form-urlencoded"};
  request.body = absl::StrCat(
      "grant_type=", EncodeQuery("urn:ietf:params:oauth:grant-type:token-exchange"),
      "&audience=", EncodeQuery(Field(json, "audience")), "&scope=", EncodeQuery(kScope),
      "&requested_token_type=", EncodeQuery("urn:ietf:params:oauth:token-type:access_token"),
      "&subject_token_type=", EncodeQuery(Field(json, "subject_token_type")),
      "&subject_token=", EncodeQuery(*token));
  const absl::StatusOr<HttpResponse> response =
      PerformPatiently(kWhat, [&request](bool) { return request; });
  if (!response.ok()) return response.status();
  absl::StatusOr<Credentials> federated = ParseOauthToken(response->body, kWhat, now_s);
  const std::string impersonation = Field(json, "service_account_impersonation_url");
  if (!federated.ok() || impersonation.empty()) return federated;
  return Impersonate(impersonation, *federated);
}

}  // namespace penstock
