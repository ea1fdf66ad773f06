#include <utility>

#include "io/credentials/aws_sources.h"

namespace penstock {

CredentialSource AwsChain(Environment environment, std::string profile) {
  const auto on = [&environment](absl::StatusOr<Credentials> (*source)(const Environment&)) {
    return [environment, source] { return source(environment); };
  };
  // A profile that is named goes first, as in AWS' command line.
  std::vector<CredentialSource> sources;
  const auto of_profile = [environment, profile] { return AwsFromProfile(environment, profile); };
  if (!profile.empty()) sources.push_back(of_profile);
  sources.push_back(on(AwsFromEnvironment));
  sources.push_back(on(AwsFromWebIdentity));
  if (profile.empty()) sources.push_back(of_profile);
  sources.push_back(on(AwsFromContainer));
  sources.push_back(on(AwsFromMachine));
  sources.push_back(Anonymous);
  return FirstOf(std::move(sources));
}

}  // namespace penstock
