#include <utility>

#include "io/credentials/gcs_sources.h"

namespace penstock {

CredentialSource GcsChain(Environment environment, std::string file) {
  std::vector<CredentialSource> sources;
  sources.push_back([environment, file] { return GcsFromFile(environment, file); });
  sources.push_back([environment] { return GcsFromMachine(environment); });
  sources.push_back(Anonymous);
  return FirstOf(std::move(sources));
}

}  // namespace penstock
