#include "base/shown_url.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace penstock {
namespace {

constexpr size_t kBytesMax = 512;

// Where what may be a secret begins behind the host; npos: nowhere.
size_t SecretIn(const std::string& url) {
  const bool is_object = absl::StartsWith(url, "s3://") || absl::StartsWith(url, "gs://");
  if (!is_object) return url.find_first_of("?#");
  const size_t query = url.find('?');
  if (query == std::string::npos) return query;
  const std::string rest = absl::AsciiStrToLower(url.substr(query));
  return absl::StrContains(rest, "signature") || absl::StrContains(rest, "token") ||
                 absl::StrContains(rest, "credential")
             ? query
             : std::string::npos;
}

}  // namespace

std::string ShownUrl(const std::string& text) {
  const size_t scheme = text.find("://");
  if (scheme == std::string::npos) return text.substr(0, kBytesMax);
  // Before it is cut, or what tells a signature may lie behind the cut.
  std::string shown = text.substr(0, SecretIn(text));
  const size_t host = scheme + 3;
  const size_t slash = std::min(shown.find('/', host), shown.size());
  const size_t at = shown.rfind('@', slash);
  if (at != std::string::npos && at >= host && at < slash) shown.erase(host, at + 1 - host);
  if (shown.size() > kBytesMax) shown.resize(kBytesMax);
  return shown;
}

}  // namespace penstock
