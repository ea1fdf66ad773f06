#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "io/credentials/gcs_sources.h"
#include "io/credentials/json_text.h"
#include "io/http/uri_encode.h"

namespace penstock {
namespace {

constexpr char kWhat[] = "service account";
constexpr char kScope[] = "https://www.googleapis.com/auth/devstorage.read_write";

}  // namespace

absl::StatusOr<Credentials> GcsFromServiceAccount(const Environment& environment,
                                                  const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto field = [&json](const char* name) { return JsonText(json, name); };
  const std::string server =
      field("token_uri").empty() ? "https://oauth2.googleapis.com/token" : field("token_uri");
  if (field("client_email").empty() || field("private_key").empty())
    return absl::InvalidArgumentError("expected client_email and private_key of a service account");
  const int64_t now_s = absl::ToUnixSeconds(absl::Now());
  const nlohmann::json claims = {{"iss", field("client_email")},
                                 {"scope", kScope},
                                 {"aud", server},
                                 {"iat", now_s},
                                 {"exp", now_s + 3600}};
  const absl::StatusOr<std::string> signed_claims =
      SignJwt(claims.dump(), field("private_key_id"), field("private_key"));
  if (!signed_claims.ok()) return signed_claims.status();
  return AskForToken(
      environment, server,
      absl::StrCat("grant_type=", EncodeQuery("urn:ietf:params:oauth:grant-type:jwt-bearer"),
                   "&assertion=", EncodeQuery(*signed_claims)),
      kWhat);
}

}  // namespace penstock
