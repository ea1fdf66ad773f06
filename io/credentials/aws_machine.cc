#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "io/credentials/aws_sources.h"
#include "io/http/perform.h"

namespace penstock {
namespace {

constexpr char kWhat[] = "the machine's metadata service";
constexpr int64_t kTimeoutMs = 1'000;

// A line of text and no page of HTML.
bool IsName(const std::string& text) {
  if (text.empty() || text.size() > 2048) return false;
  for (const char letter : text)
    if (!absl::ascii_isgraph(letter) || letter == '<' || letter == '>') return false;
  return true;
}

}  // namespace

absl::StatusOr<Credentials> AwsFromMachine(const Environment& environment) {
  if (absl::EqualsIgnoreCase(environment("AWS_EC2_METADATA_DISABLED"), "true"))
    return absl::NotFoundError("AWS_EC2_METADATA_DISABLED");
  std::string endpoint = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  const bool is_named = !endpoint.empty();
  if (!is_named) endpoint = "http://169.254.169.254";
  while (absl::EndsWith(endpoint, "/")) endpoint.pop_back();
  HttpRequest request;
  request.method = "PUT";
  request.url = endpoint + "/latest/api/token";
  request.reach = Reach::kAnywhere;
  request.timeout_ms = kTimeoutMs;
  request.headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"};
  const absl::StatusOr<HttpResponse> token = PerformOnce(request, kWhat);
  // Most machines have none.
  if (!token.ok() && !is_named) return absl::NotFoundError("no metadata service answers");
  if (!token.ok()) return token.status();
  if (token->status != 200 || !IsName(token->body)) {
    const std::string said = absl::StrCat(kWhat, ": expected a token, found HTTP ", token->status,
                                          " with ", token->body.size(), " bytes");
    return is_named ? absl::DataLossError(said) : absl::NotFoundError(said);
  }
  request = {};
  request.reach = Reach::kAnywhere;
  request.timeout_ms = kTimeoutMs;
  request.headers = {absl::StrCat("X-aws-ec2-metadata-token: ", token->body)};
  const std::string folder = endpoint + "/latest/meta-data/iam/security-credentials/";
  request.url = folder;
  const absl::StatusOr<HttpResponse> roles = PerformOnce(request, kWhat);
  if (!roles.ok()) return roles.status();
  if (roles->status == 404) return absl::NotFoundError("the machine has no role");
  const std::vector<std::string> names = absl::StrSplit(roles->body, '\n');
  const std::string role(absl::StripAsciiWhitespace(names[0]));
  if (roles->status != 200 || !IsName(role) || absl::StrContains(role, "/")) {
    return absl::DataLossError(
        absl::StrCat(kWhat, ": expected a role's name, found HTTP ", roles->status));
  }
  request.url = folder + role;
  const absl::StatusOr<HttpResponse> keys = PerformOnce(request, kWhat);
  if (!keys.ok()) return keys.status();
  if (keys->status != 200)
    return absl::UnavailableError(absl::StrCat(kWhat, ": HTTP ", keys->status));
  return ParseAwsJson(keys->body, kWhat);
}

}  // namespace penstock
