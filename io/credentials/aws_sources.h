// Where AWS' own tools find keys, each in a file of its name. Endpoints of metadata services are
// the environment's, so that a test has its own. Sources: AWS SDKs and Tools Reference Guide,
// "Standardized credential providers".
//
// Threads:  any.
#pragma once

#include <string>

#include "io/credentials/credentials.h"
#include "io/credentials/environment.h"

namespace penstock {

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN.
absl::StatusOr<Credentials> AwsFromEnvironment(const Environment& environment);

// ~/.aws/credentials and ~/.aws/config (AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE): keys, or
// credential_process. `profile`: "" is AWS_PROFILE, else "default". One that is named and not there
// is an error.
absl::StatusOr<Credentials> AwsFromProfile(const Environment& environment,
                                           const std::string& profile);
// The region that it names, or AWS_REGION and AWS_DEFAULT_REGION in front of it; "": none.
std::string AwsRegion(const Environment& environment, const std::string& profile);

// What a program prints: {"Version": 1, "AccessKeyId": …}. It is ended after 60 s.
absl::StatusOr<Credentials> AwsFromProcess(const std::string& command);

// AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN: by AssumeRoleWithWebIdentity of STS
// (AWS_ENDPOINT_URL_STS).
absl::StatusOr<Credentials> AwsFromWebIdentity(const Environment& environment);

// AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI: ECS, and EKS Pod Identity.
absl::StatusOr<Credentials> AwsFromContainer(const Environment& environment);

// IMDSv2 (AWS_EC2_METADATA_SERVICE_ENDPOINT, AWS_EC2_METADATA_DISABLED): the role of the machine.
absl::StatusOr<Credentials> AwsFromMachine(const Environment& environment);

// All of them in the order of AWS' tools; nobody at all is anonymous.
CredentialSource AwsChain(Environment environment, std::string profile);

// What a process, a container or a machine's metadata service answers; `what`: which of them, for
// messages. DataLoss for anything else, which is not shown.
absl::StatusOr<Credentials> ParseAwsJson(const std::string& text, const std::string& what);

}  // namespace penstock
