#include "io/remote/remote_url.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace penstock {
namespace {

constexpr size_t kKeyBytesMax = 1024;
constexpr size_t kUrlBytesMax = 4096;

const char* NameOf(Scheme scheme) {
  switch (scheme) {
    case Scheme::kHttp:
      return "http://";
    case Scheme::kHttps:
      return "https://";
    case Scheme::kS3:
      return "s3://";
    case Scheme::kGs:
      return "gs://";
  }
  return "";
}

bool IsBucket(absl::string_view name) {
  if (name.size() < 2 || name.size() > 255) return false;
  return std::all_of(name.begin(), name.end(), [](char letter) {
    return absl::ascii_isalnum(letter) || letter == '.' || letter == '-' || letter == '_';
  });
}

// A host's name or address, and perhaps a port.
bool IsHost(absl::string_view name) {
  if (name.empty() || name.size() > 255) return false;
  return std::all_of(name.begin(), name.end(), [](char letter) {
    return absl::ascii_isalnum(letter) || letter == '.' || letter == '-' || letter == '_' ||
           letter == ':' || letter == '[' || letter == ']';
  });
}

absl::Status Wrong(const std::string& expected, const std::string& text) {
  return absl::InvalidArgumentError(absl::StrCat(expected, " (", ShownUrl(text), ")"));
}

absl::Status CheckHttp(const RemoteUrl& url, const std::string& text) {
  if (!IsHost(url.bucket)) return Wrong("expected a host's name behind ://", text);
  if (absl::StrContains(url.key, '?')) {
    return Wrong(
        "an address with a query is not read, since queries hold signatures, which would stand in "
        "specs and "
        "messages: name the object by s3:// or gs://, or let the server give it without one",
        text);
  }
  if (absl::StrContains(url.key, '#')) return Wrong("expected an address without #", text);
  for (const char letter : url.key) {
    if (!absl::ascii_isgraph(letter))
      return Wrong("expected an encoded address, found a space or another such character in it",
                   text);
  }
  return absl::OkStatus();
}

}  // namespace

std::string RemoteUrl::text() const { return absl::StrCat(NameOf(scheme), bucket, "/", key); }

std::string WhyUnread(const std::string& text) {
  if (absl::StartsWith(text, "file://")) return "file:// is not read: write the path alone";
  // As Azure's own tools, adlfs and Hadoop call them.
  for (const char* const scheme : {"az://", "abfs://", "abfss://", "adl://", "wasb://", "wasbs://"})
    if (absl::StartsWith(text, scheme)) {
      return absl::StrCat(scheme,
                          " is not read yet: Azure's storage is for a later release; until then "
                          "mount the container (blobfuse2, rclone mount), or copy the files");
    }
  return "";
}

absl::StatusOr<RemoteUrl> ParseRemoteUrl(const std::string& text) {
  if (text.size() > kUrlBytesMax) return Wrong("expected an address of at most 4096 bytes", text);
  if (absl::StrContains(text, '\0')) return Wrong("an address with a zero byte", text);
  RemoteUrl url;
  absl::string_view rest = text;
  bool is_known = false;
  for (const Scheme scheme : {Scheme::kHttp, Scheme::kHttps, Scheme::kS3, Scheme::kGs}) {
    if (!absl::ConsumePrefix(&rest, NameOf(scheme))) continue;
    url.scheme = scheme;
    is_known = true;
    break;
  }
  if (!is_known) {
    const std::string reason = WhyUnread(text);
    return Wrong(!reason.empty()
                     ? reason
                     : "expected http://, https://, s3:// or gs://; what others lead to can be "
                       "mounted (rclone mount) or copied",
                 text);
  }
  const size_t slash = rest.find('/');
  url.bucket = std::string(rest.substr(0, slash));
  url.key = slash == absl::string_view::npos ? "" : std::string(rest.substr(slash + 1));
  if (url.is_http() && absl::StrContains(url.bucket, '@'))
    return Wrong("an address names no user: credentials stand in the daemon's configuration", text);
  if (url.is_http()) {
    if (absl::Status status = CheckHttp(url, text); !status.ok()) return status;
  } else if (!IsBucket(url.bucket)) {
    return Wrong(
        "expected a bucket's name of 2 to 255 letters, digits, '.', '-' and '_' behind ://", text);
  }
  if (url.key.empty()) return Wrong("expected an object's name behind the bucket or host", text);
  if (url.key.size() > kKeyBytesMax && !url.is_http())
    return Wrong("expected an object's name of at most 1024 bytes", text);
  return url;
}

}  // namespace penstock
