#include "absl/strings/str_cat.h"
#include "io/credentials/gcs_sources.h"
#include "io/credentials/json_text.h"

namespace penstock {

absl::StatusOr<Credentials> GcsFromFile(const Environment& environment, const std::string& path) {
  std::string named = path.empty() ? environment("GOOGLE_APPLICATION_CREDENTIALS") : path;
  const bool is_named = !named.empty();
  if (!is_named) {
    const std::string folder = environment("CLOUDSDK_CONFIG");
    named = absl::StrCat(folder.empty() ? environment.InHome(".config/gcloud") : folder,
                         "/application_default_credentials.json");
  }
  const absl::StatusOr<std::string> text = environment.read_file(named);
  if (!text.ok()) {
    if (!is_named) return absl::NotFoundError("no file of Google's credentials");
    return absl::InvalidArgumentError(absl::StrCat("cannot read the credentials in ", named));
  }
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  const std::string type = JsonText(json, "type");
  absl::StatusOr<Credentials> found = absl::InvalidArgumentError("");
  if (type == "service_account") {
    found = GcsFromServiceAccount(environment, *text);
  } else if (type == "authorized_user") {
    found = GcsFromAuthorisedUser(environment, *text);
  } else if (type == "external_account") {
    found = GcsFromExternalAccount(environment, *text);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("expected credentials of type service_account, authorized_user or "
                     "external_account in ",
                     named));
  }
  if (!found.ok())
    return absl::Status(found.status().code(),
                        absl::StrCat(found.status().message(), " (", named, ")"));
  return found;
}

}  // namespace penstock
