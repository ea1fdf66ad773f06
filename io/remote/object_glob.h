// Globs of objects' names, as a shell has them for paths: "*" and "?" stop at "/", "[a-c]" and
// "{a,b}" choose, and "**" goes through folders.
//
// Threads:  any; no state.
// Limits:   256 choices of braces together.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock {

// Without braces.
absl::StatusOr<std::vector<std::string>> ExpandBraces(const std::string& glob);
// `glob` without braces. A name that begins with a dot is matched by a dot only.
bool MatchesGlob(const std::string& glob, const std::string& name);
// Up to the first character that is a wildcard.
std::string LiteralPrefix(const std::string& glob);

}  // namespace penstock
