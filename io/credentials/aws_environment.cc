#include "io/credentials/aws_sources.h"

namespace penstock {

absl::StatusOr<Credentials> AwsFromEnvironment(const Environment& environment) {
  Credentials found;
  found.source = "environment";
  found.access_key_id = environment("AWS_ACCESS_KEY_ID");
  found.secret_access_key = environment("AWS_SECRET_ACCESS_KEY");
  found.session_token = environment("AWS_SESSION_TOKEN");
  if (found.access_key_id.empty() && found.secret_access_key.empty())
    return absl::NotFoundError("AWS_ACCESS_KEY_ID is not set");
  if (found.access_key_id.empty() || found.secret_access_key.empty()) {
    return absl::InvalidArgumentError(
        "expected both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, found one");
  }
  return found;
}

}  // namespace penstock
