#include "absl/strings/str_cat.h"
#include "io/credentials/gcs_sources.h"
#include "io/credentials/json_text.h"
#include "io/http/uri_encode.h"

namespace penstock {
namespace {

constexpr char kWhat[] = "authorised user";

}  // namespace

absl::StatusOr<Credentials> GcsFromAuthorisedUser(const Environment& environment,
                                                  const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto field = [&json](const char* name) { return JsonText(json, name); };
  const std::string server =
      field("token_uri").empty() ? "https://oauth2.googleapis.com/token" : field("token_uri");
  if (field("refresh_token").empty())
    return absl::InvalidArgumentError("expected refresh_token of an authorised user");
  return AskForToken(
      environment, server,
      absl::StrCat("grant_type=refresh_token&client_id=", EncodeQuery(field("client_id")),
                   "&client_secret=", EncodeQuery(field("client_secret")),
                   "&refresh_token=", EncodeQuery(field("refresh_token"))),
      kWhat);
}

}  // namespace penstock
