#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "io/credentials/aws_sources.h"

namespace penstock {
namespace {

using Section = std::map<std::string, std::string>;

// The lines "name = value" of a section. Those that are indented belong to the one before, and
// nobody asks for them.
void AddSection(const std::string& text, const std::string& name, bool* is_there,
                Section* section) {
  bool within = false;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripTrailingAsciiWhitespace(line);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      const size_t end = line.find(']');
      within = end != absl::string_view::npos &&
               absl::StripAsciiWhitespace(line.substr(1, end - 1)) == name;
      *is_there |= within;
      continue;
    }
    const size_t equals = line.find('=');
    if (!within || absl::ascii_isspace(line[0]) || equals == absl::string_view::npos) continue;
    section->try_emplace(absl::AsciiStrToLower(absl::StripAsciiWhitespace(line.substr(0, equals))),
                         std::string(absl::StripAsciiWhitespace(line.substr(equals + 1))));
  }
}

struct Profile {
  std::string name;
  bool is_named = false;
  bool is_there = false;
  Section values;

  std::string operator[](const std::string& key) const {
    const auto found = values.find(key);
    return found == values.end() ? "" : found->second;
  }
};

Profile Read(const Environment& environment, const std::string& name) {
  Profile profile;
  profile.name = name.empty() ? environment("AWS_PROFILE") : name;
  profile.is_named = !profile.name.empty();
  if (!profile.is_named) profile.name = "default";
  const auto path = [&environment](const char* variable, const char* in_home) {
    const std::string named = environment(variable);
    return named.empty() ? environment.InHome(in_home) : named;
  };
  const auto keys = environment.read_file(path("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"));
  if (keys.ok()) AddSection(*keys, profile.name, &profile.is_there, &profile.values);
  const auto config = environment.read_file(path("AWS_CONFIG_FILE", ".aws/config"));
  const bool is_default = profile.name == "default";
  if (config.ok()) {
    AddSection(*config, is_default ? "default" : absl::StrCat("profile ", profile.name),
               &profile.is_there, &profile.values);
  }
  return profile;
}

}  // namespace

absl::StatusOr<Credentials> AwsFromProfile(const Environment& environment,
                                           const std::string& name) {
  const Profile profile = Read(environment, name);
  if (!profile.is_there) {
    const std::string said = absl::StrCat("no profile ", profile.name, " in ~/.aws");
    return profile.is_named ? absl::InvalidArgumentError(said) : absl::NotFoundError(said);
  }
  Credentials found;
  found.source = absl::StrCat("profile ", profile.name);
  found.access_key_id = profile["aws_access_key_id"];
  found.secret_access_key = profile["aws_secret_access_key"];
  found.session_token = profile["aws_session_token"];
  if (!found.access_key_id.empty() && !found.secret_access_key.empty()) return found;
  if (const std::string command = profile["credential_process"]; !command.empty())
    return AwsFromProcess(command);
  // What others of AWS' tools know how to do.
  for (const char* const key : {"sso_session", "sso_start_url", "role_arn"}) {
    if (profile[key].empty()) continue;
    return absl::UnimplementedError(absl::StrCat(
        "profile ", profile.name, " has ", key,
        ", which is not read: let it name credential_process = aws configure export-credentials "
        "--profile …"));
  }
  return absl::NotFoundError(absl::StrCat("profile ", profile.name, " has no keys"));
}

std::string AwsRegion(const Environment& environment, const std::string& profile) {
  for (const char* const name : {"AWS_REGION", "AWS_DEFAULT_REGION"})
    if (const std::string region = environment(name); !region.empty()) return region;
  return Read(environment, profile)["region"];
}

}  // namespace penstock
