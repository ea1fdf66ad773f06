#include "absl/strings/str_cat.h"
#include "io/credentials/gcs_sources.h"
#include "nlohmann/json.hpp"

namespace penstock {

absl::StatusOr<Credentials> ParseOauthToken(const std::string& text, const std::string& what,
                                            int64_t now_s) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  Credentials found;
  found.source = what;
  if (json.is_object() && json.contains("access_token") && json["access_token"].is_string())
    found.bearer = json["access_token"].get<std::string>();
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

}  // namespace penstock
