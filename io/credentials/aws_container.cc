#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "io/credentials/aws_sources.h"
#include "io/http/perform.h"

namespace penstock {

absl::StatusOr<Credentials> AwsFromContainer(const Environment& environment) {
  const std::string relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  std::string url = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (!relative.empty()) url = absl::StrCat("http://169.254.170.2", relative);
  if (url.empty()) return absl::NotFoundError("no container credentials are set up");
  HttpRequest request;
  request.url = url;
  request.reach = Reach::kAnywhere;
  request.authorities = environment.authorities;
  request.timeout_ms = 5'000;
  std::string token = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
      !file.empty()) {
    const absl::StatusOr<std::string> read = environment.read_file(file);
    if (!read.ok())
      return absl::InvalidArgumentError(
          absl::StrCat("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: ", file, " cannot be read"));
    token = std::string(absl::StripAsciiWhitespace(*read));
  }
  if (absl::StrContains(token, "\r") || absl::StrContains(token, "\n"))
    return absl::InvalidArgumentError("the container's authorization token has a line break");
  if (!token.empty()) request.headers.push_back(absl::StrCat("Authorization: ", token));
  const absl::StatusOr<HttpResponse> response =
      PerformPatiently("container credentials", [&request](bool) { return request; });
  if (!response.ok()) return response.status();
  return ParseAwsJson(response->body, "container credentials");
}

}  // namespace penstock
