#include "io/credentials/credentials.h"

#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace penstock {

namespace {

constexpr int64_t kAnonymousS = 600;

}  // namespace

CredentialSource FirstOf(std::vector<CredentialSource> sources) {
  return [sources = std::move(sources)]() -> absl::StatusOr<Credentials> {
    for (const CredentialSource& source : sources) {
      absl::StatusOr<Credentials> found = source();
      if (!absl::IsNotFound(found.status())) return found;
    }
    return absl::NotFoundError("no credentials are set up");
  };
}

absl::StatusOr<Credentials> Anonymous() {
  Credentials nobody;
  nobody.source = "anonymous";
  nobody.expires_s = absl::ToUnixSeconds(absl::Now()) + kAnonymousS;
  return nobody;
}

int64_t ParseExpiry(const std::string& text) {
  absl::Time time;
  std::string error;
  return absl::ParseTime(absl::RFC3339_full, text, &time, &error) ? absl::ToUnixSeconds(time) : 0;
}

}  // namespace penstock
