#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "io/credentials/gcs_sources.h"
#include "io/http/perform.h"

namespace penstock {
namespace {

constexpr char kWhat[] = "Google's metadata service";

}  // namespace

absl::StatusOr<Credentials> GcsFromMachine(const Environment& environment) {
  if (environment("NO_GCE_CHECK") == "true") return absl::NotFoundError("NO_GCE_CHECK");
  std::string host = environment("GCE_METADATA_HOST");
  const bool is_named = !host.empty();
  if (!is_named) host = "metadata.google.internal";
  HttpRequest request;
  request.url =
      absl::StrCat("http://", host, "/computeMetadata/v1/instance/service-accounts/default/token");
  request.reach = Reach::kAnywhere;
  request.timeout_ms = 2'000;
  request.headers = {"Metadata-Flavor: Google"};
  const int64_t now_s = absl::ToUnixSeconds(absl::Now());
  const absl::StatusOr<HttpResponse> response = PerformOnce(request, kWhat);
  if (!response.ok() && !is_named) return absl::NotFoundError("no metadata service answers");
  if (!response.ok()) return response.status();
  if (response->status != 200) {
    const std::string said = absl::StrCat(kWhat, ": HTTP ", response->status);
    return is_named ? absl::UnavailableError(said) : absl::NotFoundError(said);
  }
  return ParseOauthToken(response->body, kWhat, now_s);
}

}  // namespace penstock
