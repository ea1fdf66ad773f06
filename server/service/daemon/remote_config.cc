#include "server/service/daemon/remote_config.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file_error.h"
#include "base/shown_url.h"
#include "io/remote/authorities.h"
#include "io/remote/remote_environment.h"
#include "io/remote/remote_url.h"

namespace penstock {
namespace {

constexpr int64_t kLeastCacheBytes = int64_t{64} << 20;

absl::Status Wrong(const std::string& field, absl::string_view expected, const std::string& found) {
  // A password may stand in front of "@", and no scheme tells where it begins.
  const bool is_shown = absl::StrContains(found, "://") || !absl::StrContains(found, '@');
  const std::string shown = is_shown ? ShownUrl(found) : "another text";
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected ", expected, ", found ", found.empty() ? "nothing" : shown));
}

bool HasScheme(const std::string& text, std::initializer_list<const char*> schemes) {
  for (const char* const scheme : schemes)
    if (absl::StartsWith(text, scheme)) return true;
  return false;
}

bool HasOddBytes(const std::string& text) {
  for (const char letter : text)
    if (!absl::ascii_isprint(letter)) return true;
  return false;
}

absl::Status CheckPrefix(const std::string& field, const std::string& prefix) {
  if (HasScheme(prefix, {"s3://", "gs://", "http://", "https://"}) && !HasOddBytes(prefix))
    return absl::OkStatus();
  if (const std::string reason = WhyUnread(prefix); !reason.empty())
    return absl::InvalidArgumentError(absl::StrCat(field, ": ", reason));
  return Wrong(field, "a prefix of addresses such as s3://bucket/", prefix);
}

absl::Status CheckServer(const std::string& field, const std::string& url) {
  if (url.empty()) return absl::OkStatus();
  if (HasScheme(url, {"http://", "https://"}) && !HasOddBytes(url)) return absl::OkStatus();
  return Wrong(field, "http://HOST:PORT or https://HOST:PORT", url);
}

absl::Status CheckPath(const std::string& field, const std::string& path) {
  if (path.empty() || (path[0] == '/' && !absl::StrContains(path, '\0'))) return absl::OkStatus();
  return Wrong(field, "an absolute path", path);
}

absl::Status CheckRange(const std::string& field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " out of range: ", value, " is not in [", low, ", ", high, "]"));
}

absl::Status CheckPlace(const std::string& field, const v1::RemotePlaceOptions& place) {
  absl::Status status = CheckPrefix(absl::StrCat(field, ".prefix"), place.prefix());
  status.Update(CheckServer(absl::StrCat(field, ".endpoint"), place.endpoint()));
  // It becomes a part of a host's name.
  for (const char letter : place.region()) {
    if (!absl::ascii_isalnum(letter) && letter != '-')
      status.Update(Wrong(absl::StrCat(field, ".region"), "letters, digits and -", place.region()));
  }
  const bool is_s3 = absl::StartsWith(place.prefix(), "s3://");
  const bool is_gs = absl::StartsWith(place.prefix(), "gs://");
  switch (place.credentials_case()) {
    case v1::RemotePlaceOptions::kAwsProfile:
    case v1::RemotePlaceOptions::kCredentialProcess:
    case v1::RemotePlaceOptions::kAwsKey:
      if (!is_s3)
        status.Update(absl::InvalidArgumentError(
            absl::StrCat(field, ": keys of AWS are for a prefix that begins with s3://")));
      break;
    case v1::RemotePlaceOptions::kGoogleFile:
      if (!is_gs)
        status.Update(absl::InvalidArgumentError(absl::StrCat(
            field, ".google_file: Google's credentials are for a prefix that begins with gs://")));
      break;
    case v1::RemotePlaceOptions::kEnvironment:
    case v1::RemotePlaceOptions::CREDENTIALS_NOT_SET:
      break;
  }
  status.Update(CheckPath(absl::StrCat(field, ".google_file"), place.google_file()));
  if (place.has_aws_key()) {
    const std::string& file = place.aws_key().secret_access_key_file();
    const std::string key = absl::StrCat(field, ".aws_key");
    if (place.aws_key().access_key_id().empty())
      status.Update(Wrong(absl::StrCat(key, ".access_key_id"), "the key's name", ""));
    if (file.empty() || file[0] != '/') {
      // Who writes the secret itself there is not shown it.
      status.Update(absl::InvalidArgumentError(absl::StrCat(
          key, ".secret_access_key_file: expected the absolute path of a file with the secret")));
    }
  }
  return status;
}

RemotePrefix PrefixOf(const v1::RemotePlaceOptions& place) {
  RemotePrefix prefix;
  prefix.prefix = place.prefix();
  prefix.endpoint = place.endpoint();
  prefix.region = place.region();
  prefix.is_ambient = place.environment();
  prefix.profile = place.aws_profile();
  prefix.process = place.credential_process();
  prefix.google_file = place.google_file();
  prefix.access_key_id = place.aws_key().access_key_id();
  prefix.secret_access_key_file = place.aws_key().secret_access_key_file();
  return prefix;
}

// As for folders of this machine; but without cache { roots } only the daemon's owner writes to
// addresses, since the credentials may be somebody else's.
WriteRights RightsOf(const v1::DaemonConfig& config, bool has_owner) {
  WriteRights rights;
  for (const std::string& root : config.cache().roots())
    if (IsAddress(root)) rights.folders.push_back(root);
  rights.all = has_owner && config.cache().roots().empty() && config.data_roots().empty();
  return rights;
}

}  // namespace

absl::Status CheckRemote(const v1::RemoteFileOptions& remote) {
  absl::Status status;
  for (int i = 0; i < remote.allow_size(); ++i) {
    if (remote.allow(i) != "*")
      status.Update(CheckPrefix(absl::StrCat("remote.allow[", i, "]"), remote.allow(i)));
  }
  for (int i = 0; i < remote.allow_local_size(); ++i)
    status.Update(CheckPrefix(absl::StrCat("remote.allow_local[", i, "]"), remote.allow_local(i)));
  for (int i = 0; i < remote.place_size(); ++i)
    status.Update(CheckPlace(absl::StrCat("remote.place[", i, "]"), remote.place(i)));
  if (remote.has_memory_bytes())
    status.Update(CheckRange("remote.memory_bytes", remote.memory_bytes(), int64_t{16} << 20,
                             int64_t{1} << 40));
  status.Update(CheckServer("remote.proxy", remote.proxy()));
  status.Update(CheckPath("remote.authorities", remote.authorities()));
  if (remote.max_requests() != 0)
    status.Update(CheckRange("remote.max_requests", remote.max_requests(), 4, 256));
  if (remote.give_up_ms() != 0)
    status.Update(CheckRange("remote.give_up_ms", remote.give_up_ms(), 1000, 86'400'000));
  status.Update(CheckPath("remote.cache_folder", remote.cache_folder()));
  if (remote.cache_bytes() != 0)
    status.Update(
        CheckRange("remote.cache_bytes", remote.cache_bytes(), kLeastCacheBytes, INT64_MAX));
  return status;
}

absl::StatusOr<RemoteOptions> RemoteOptionsOf(const v1::DaemonConfig& config,
                                              const Environment& environment, bool has_owner,
                                              uint64_t memory_bytes) {
  if (!config.has_remote()) {
    absl::StatusOr<RemoteOptions> options = RemoteOptionsOf(environment, has_owner, memory_bytes);
    if (options.ok()) options->writes = RightsOf(config, has_owner);
    return options;
  }
  const v1::RemoteFileOptions& remote = config.remote();
  RemoteOptions options;
  options.allowed_by = "remote { allow }";
  options.writes = RightsOf(config, has_owner);
  options.is_off = remote.allow().empty();
  for (const std::string& prefix : remote.allow()) options.allowed.push_back(prefix);
  for (const std::string& prefix : remote.allow())
    if (prefix == "*") options.allowed.clear();
  options.unguarded = {remote.allow_local().begin(), remote.allow_local().end()};
  for (const v1::RemotePlaceOptions& place : remote.place())
    options.prefixes.push_back(PrefixOf(place));
  options.reach = has_owner ? Reach::kLoopback : Reach::kPublic;
  options.memory_bytes = remote.has_memory_bytes() ? static_cast<uint64_t>(remote.memory_bytes())
                                                   : DefaultRemoteMemory(memory_bytes);
  options.proxy = remote.proxy();
  options.authorities = FindAuthorities(remote.authorities().empty() ? environment("SSL_CERT_FILE")
                                                                     : remote.authorities());
  if (remote.max_requests() != 0) options.requests_max = remote.max_requests();
  if (remote.give_up_ms() != 0) options.give_up_ms = remote.give_up_ms();
  options.cache_folder = remote.cache_folder();
  options.cache_bytes = static_cast<uint64_t>(remote.cache_bytes());
  options.trusts_etags = remote.trust_etags();
  return options;
}

}  // namespace penstock
