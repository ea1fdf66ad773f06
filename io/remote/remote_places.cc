#include "io/remote/remote_places.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "io/credentials/aws_sources.h"
#include "io/credentials/gcs_sources.h"
#include "io/http/uri_encode.h"

namespace penstock {
namespace {

constexpr char kDefaultRegion[] = "us-east-1";

// Whether an address is one of a prefix' objects: "s3://bucket" is no prefix of "s3://bucket2/a".
bool Fits(const std::string& text, const std::string& prefix) {
  if (!absl::StartsWith(text, prefix)) return false;
  return prefix.empty() || prefix.back() == '/' || text.size() == prefix.size() ||
         text[prefix.size()] == '/';
}

// Whether a server that resolves "." and ".." would look elsewhere than the address says, also where they are encoded.
bool HasDots(const std::string& text) {
  const std::string decoded = DecodeUri(text, /*plus_is_space=*/false);
  const std::vector<absl::string_view> parts = absl::StrSplit(decoded, absl::ByAnyChar("/\\"));
  return std::any_of(parts.begin(), parts.end(),
                     [](absl::string_view part) { return part == "." || part == ".."; });
}

bool FitsOne(const std::string& text, const std::vector<std::string>& prefixes) {
  return !HasDots(text) &&
         std::any_of(prefixes.begin(), prefixes.end(),
                     [&text](const std::string& prefix) { return Fits(text, prefix); });
}

CredentialSource FixedKeys(const Environment& environment, const RemotePrefix& prefix) {
  return [environment, prefix]() -> absl::StatusOr<Credentials> {
    const absl::StatusOr<std::string> file = environment.read_file(prefix.secret_access_key_file);
    if (!file.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot read secret_access_key_file ", prefix.secret_access_key_file));
    }
    Credentials found;
    found.source = "configuration";
    found.access_key_id = prefix.access_key_id;
    const std::vector<absl::string_view> lines = absl::StrSplit(*file, absl::MaxSplits('\n', 1));
    found.secret_access_key = std::string(absl::StripAsciiWhitespace(lines[0]));
    return found;
  };
}

// Who gives credentials out is known by the same certificates as the stores are.
Environment WithAuthorities(Environment environment, const std::string& authorities) {
  environment.authorities = authorities;
  return environment;
}

std::string EndpointIn(const Environment& environment, Scheme scheme) {
  if (scheme == Scheme::kGs) return environment("STORAGE_EMULATOR_HOST");
  if (scheme != Scheme::kS3) return "";
  const std::string of_s3 = environment("AWS_ENDPOINT_URL_S3");
  return of_s3.empty() ? environment("AWS_ENDPOINT_URL") : of_s3;
}

}  // namespace

RemotePlaces::RemotePlaces(RemoteOptions options, Environment environment)
    : options_(std::move(options)),
      environment_(WithAuthorities(std::move(environment), options_.authorities)) {}

std::shared_ptr<CredentialKeeper> RemotePlaces::KeeperOf(const RemotePrefix& prefix,
                                                         Scheme scheme) {
  CredentialSource source;
  if (scheme == Scheme::kS3) {
    if (!prefix.access_key_id.empty()) {
      source = FixedKeys(environment_, prefix);
    } else if (!prefix.process.empty()) {
      source = [command = prefix.process] { return AwsFromProcess(command); };
    } else if (!prefix.profile.empty()) {
      source = [environment = environment_, profile = prefix.profile] {
        return AwsFromProfile(environment, profile);
      };
    } else if (prefix.is_ambient) {
      source = AwsChain(environment_, "");
    }
  } else if (scheme == Scheme::kGs) {
    if (!prefix.google_file.empty()) {
      source = [environment = environment_, file = prefix.google_file] {
        return GcsFromFile(environment, file);
      };
    } else if (prefix.is_ambient) {
      source = GcsChain(environment_, "");
    }
  }
  return source ? std::make_shared<CredentialKeeper>(std::move(source)) : nullptr;
}

absl::StatusOr<std::shared_ptr<RemotePlace>> RemotePlaces::PlaceOf(const RemoteUrl& url) {
  const std::string text = url.text();
  if (options_.is_off) {
    return absl::PermissionDeniedError(absl::StrCat("this daemon reads no addresses: it has no ",
                                                    options_.allowed_by, " (", ShownUrl(text),
                                                    ")"));
  }
  if (!options_.allowed.empty() && !FitsOne(text, options_.allowed)) {
    return absl::PermissionDeniedError(absl::StrCat("not below the daemon's ", options_.allowed_by,
                                                    " (", absl::StrJoin(options_.allowed, ", "),
                                                    "): ", ShownUrl(text)));
  }
  RemotePrefix found;
  found.is_ambient = options_.is_ambient;
  const bool has_dots = HasDots(text);
  for (const RemotePrefix& prefix : options_.prefixes) {
    if (!Fits(text, prefix.prefix)) continue;
    // Its server and its credentials are for what lies below it.
    if (has_dots && !absl::EndsWith(prefix.prefix, "://")) {
      return absl::PermissionDeniedError(
          absl::StrCat("an address with . or .. between its slashes may lead out of ",
                       prefix.prefix, ", which the daemon has a place for: ", ShownUrl(text)));
    }
    if (prefix.prefix.size() >= found.prefix.size()) found = prefix;
  }
  const bool is_unguarded = FitsOne(text, options_.unguarded);
  const std::string name = absl::StrCat(found.prefix, " ", is_unguarded, " ",
                                        static_cast<int>(url.scheme), " ", url.bucket);
  std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<RemotePlace>& place = places_[name];
  if (place != nullptr) return place;
  place = std::make_shared<RemotePlace>();
  place->endpoint = found.endpoint;
  if (place->endpoint.empty() && found.is_ambient)
    place->endpoint = EndpointIn(environment_, url.scheme);
  while (absl::EndsWith(place->endpoint, "/")) place->endpoint.pop_back();
  if (!place->endpoint.empty() && !absl::StrContains(place->endpoint, "://"))
    place->endpoint = absl::StrCat("http://", place->endpoint);
  // Who has an endpoint or a provider in mind names no host.
  place->reach = !place->endpoint.empty() || is_unguarded ? Reach::kAnywhere : options_.reach;
  place->proxy = options_.proxy;
  place->authorities = options_.authorities;
  std::string region = found.region;
  if (region.empty() && (found.is_ambient || !found.profile.empty()))
    region = AwsRegion(environment_, found.profile);
  place->set_region(region.empty() ? kDefaultRegion : region);
  std::shared_ptr<CredentialKeeper>& keeper =
      keepers_[absl::StrCat(found.prefix, " ", static_cast<int>(url.scheme))];
  if (keeper == nullptr) keeper = KeeperOf(found, url.scheme);
  place->keeper = keeper;
  return place;
}

}  // namespace penstock
