#include "io/remote/remote_environment.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "io/remote/authorities.h"

namespace penstock {
namespace {

constexpr uint64_t kLeastBytes = uint64_t{16} << 20;
constexpr uint64_t kMostBytes = uint64_t{1} << 40;

absl::StatusOr<std::vector<std::string>> Prefixes(const Environment& environment,
                                                  const std::string& name) {
  const std::vector<std::string> prefixes =
      absl::StrSplit(environment(name), ' ', absl::SkipEmpty());
  for (const std::string& prefix : prefixes) {
    if (absl::StrContains(prefix, "://")) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": expected prefixes of addresses such as s3://bucket/, found ", prefix));
  }
  return prefixes;
}

}  // namespace

uint64_t DefaultRemoteMemory(uint64_t memory_bytes) {
  return std::clamp(memory_bytes / 8, kLeastBytes, RemoteOptions().memory_bytes);
}

absl::StatusOr<RemoteOptions> RemoteOptionsOf(const Environment& environment, bool has_owner,
                                              uint64_t memory_bytes) {
  RemoteOptions options;
  const std::string allow = environment("PENSTOCK_REMOTE_ALLOW");
  options.is_off = allow == "none" || (allow.empty() && !has_owner);
  if (!options.is_off && !allow.empty() && allow != "*") {
    absl::StatusOr<std::vector<std::string>> allowed =
        Prefixes(environment, "PENSTOCK_REMOTE_ALLOW");
    if (!allowed.ok()) return allowed.status();
    options.allowed = *std::move(allowed);
  }
  absl::StatusOr<std::vector<std::string>> local = Prefixes(environment, "PENSTOCK_REMOTE_LOCAL");
  if (!local.ok()) return local.status();
  options.unguarded = *std::move(local);
  options.is_ambient = true;
  options.writes.all = has_owner;
  options.reach = has_owner ? Reach::kLoopback : Reach::kPublic;
  options.memory_bytes = DefaultRemoteMemory(memory_bytes);
  if (const std::string bytes = environment("PENSTOCK_REMOTE_MEMORY"); !bytes.empty()) {
    if (!absl::SimpleAtoi(bytes, &options.memory_bytes) || options.memory_bytes < kLeastBytes ||
        options.memory_bytes > kMostBytes) {
      return absl::InvalidArgumentError(absl::StrCat("PENSTOCK_REMOTE_MEMORY: expected ",
                                                     kLeastBytes, " to ", kMostBytes,
                                                     " bytes, found ", bytes));
    }
  }
  options.proxy = environment("PENSTOCK_REMOTE_PROXY");
  options.authorities = FindAuthorities(environment("SSL_CERT_FILE"));
  options.cache_folder = environment("PENSTOCK_REMOTE_CACHE");
  if (!options.cache_folder.empty() && options.cache_folder[0] != '/') {
    return absl::InvalidArgumentError(absl::StrCat(
        "PENSTOCK_REMOTE_CACHE: expected an absolute path, found ", options.cache_folder));
  }
  if (const std::string trust = environment("PENSTOCK_REMOTE_TRUST_ETAGS"); !trust.empty()) {
    if (trust != "0" && trust != "1") {
      return absl::InvalidArgumentError(
          absl::StrCat("PENSTOCK_REMOTE_TRUST_ETAGS: expected 0 or 1, found ", trust));
    }
    options.trusts_etags = trust == "1";
  }
  return options;
}

}  // namespace penstock
