#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "io/credentials/gcs_sources.h"
#include "io/credentials/json_text.h"
#include "io/http/perform.h"
#include "io/http/uri_encode.h"

namespace penstock {
namespace {

constexpr char kWhat[] = "external account";
constexpr char kScope[] = "https://www.googleapis.com/auth/cloud-platform";

using Json = nlohmann::json;

// The token of another party, as text or in a field of JSON.
absl::StatusOr<std::string> SubjectToken(const Environment& environment, const Json& source) {
  const std::string path = JsonText(source, "file");
  if (path.empty()) {
    return absl::UnimplementedError(
        "credential_source: expected file; AWS, URLs and programs are not read");
  }
  const absl::StatusOr<std::string> text = environment.read_file(path);
  if (!text.ok()) return absl::InvalidArgumentError(absl::StrCat("cannot read ", path));
  const Json format = source.contains("format") ? source["format"] : Json();
  if (JsonText(format, "type") != "json") return std::string(absl::StripAsciiWhitespace(*text));
  const Json parsed = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const std::string token = JsonText(parsed, JsonText(format, "subject_token_field_name"));
  if (token.empty()) return absl::DataLossError(absl::StrCat("no token in ", path));
  return token;
}

// The token of a service account in the place of the federated one.
absl::StatusOr<Credentials> Impersonate(const Environment& environment, const std::string& url,
                                        const Credentials& federated) {
  HttpRequest request;
  request.method = "POST";
  request.url = url;
  request.reach = Reach::kAnywhere;
  request.authorities = environment.authorities;
  request.headers = {"Content-Type: application/json",
                     absl::StrCat("Authorization: Bearer ", federated.bearer)};
  request.body = Json{{"scope", {kScope}}}.dump();
  const absl::StatusOr<HttpResponse> response =
      PerformPatiently(kWhat, [&request](bool) { return request; });
  if (!response.ok()) return response.status();
  const Json json = Json::parse(response->body, nullptr, /*allow_exceptions=*/false);
  absl::StatusOr<Credentials> found =
      ParseOauthToken(Json{{"access_token", JsonText(json, "accessToken")}}.dump(), kWhat, 0);
  if (found.ok()) found->expires_s = ParseExpiry(JsonText(json, "expireTime"));
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
  const std::string server = JsonText(json, "token_url");
  if (server.empty() || JsonText(json, "audience").empty())
    return absl::InvalidArgumentError("expected audience and token_url of an external account");
  const std::string form = absl::StrCat(
      "grant_type=", EncodeQuery("urn:ietf:params:oauth:grant-type:token-exchange"),
      "&audience=", EncodeQuery(JsonText(json, "audience")), "&scope=", EncodeQuery(kScope),
      "&requested_token_type=", EncodeQuery("urn:ietf:params:oauth:token-type:access_token"),
      "&subject_token_type=", EncodeQuery(JsonText(json, "subject_token_type")),
      "&subject_token=", EncodeQuery(*token));
  absl::StatusOr<Credentials> federated = AskForToken(environment, server, form, kWhat);
  const std::string impersonation = JsonText(json, "service_account_impersonation_url");
  if (!federated.ok() || impersonation.empty()) return federated;
  return Impersonate(environment, impersonation, *federated);
}

}  // namespace penstock
