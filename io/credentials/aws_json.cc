#include "absl/strings/str_cat.h"
#include "io/credentials/aws_sources.h"
#include "io/credentials/json_text.h"

namespace penstock {

absl::StatusOr<Credentials> ParseAwsJson(const std::string& text, const std::string& what) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto field = [&json](const char* name) { return JsonText(json, name); };
  Credentials found;
  found.source = what;
  found.access_key_id = field("AccessKeyId");
  found.secret_access_key = field("SecretAccessKey");
  found.session_token = field("SessionToken");
  if (found.session_token.empty()) found.session_token = field("Token");
  found.expires_s = ParseExpiry(field("Expiration"));
  if (found.access_key_id.empty() || found.secret_access_key.empty()) {
    return absl::DataLossError(
        absl::StrCat(what, ": expected JSON with AccessKeyId and SecretAccessKey, found ",
                     text.size(), " bytes of something else"));
  }
  return found;
}

}  // namespace penstock
