// Addresses as specs name them.
//
//     s3://bucket/key         the key as it is called, nothing encoded: "s3://b/a b?.tfrecord" is
//                             the object "a b?.tfrecord"
//     gs://bucket/object      likewise
//     https://host/path       as in a browser, encoded where it must be; no user, query or
//                             fragment, which hold secrets or are never sent
//
// Threads:  values; any.
// Limits:   keys of 1,024 bytes, addresses of 4,096.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/shown_url.h"

namespace penstock {

enum class Scheme : uint8_t { kHttp, kHttps, kS3, kGs };

struct RemoteUrl {
  Scheme scheme = Scheme::kHttp;
  std::string bucket;  // of HTTP: the host, and the port where one is named
  std::string key;     // of HTTP: what follows the host's slash

  bool is_http() const { return scheme == Scheme::kHttp || scheme == Scheme::kHttps; }
  // What it was parsed from.
  std::string text() const;
};

// Why addresses of this scheme are not read, and what to do instead; "" of those that are, and of
// what is no address of a known kind.
std::string WhyUnread(const std::string& text);

// Of an object, or of a glob of objects. InvalidArgument says what was expected.
absl::StatusOr<RemoteUrl> ParseRemoteUrl(const std::string& text);

}  // namespace penstock
