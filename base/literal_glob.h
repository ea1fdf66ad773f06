// Paths that have the characters of globs in their names: what is there is named, and only what is
// not there is a glob.
//
// Threads:  any; no state.
// Cost:     a look for each name of the pattern that has such a character, up to the first that is
//           a wildcard.
#pragma once

#include <glob.h>

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"

namespace penstock {

// How glob() is called for patterns: "{a,b}" is a choice, as in a shell.
inline constexpr int kGlobFlags = GLOB_NOSORT | GLOB_BRACE;

// Whether glob() could take the pattern for more than one path, or for another one.
bool HasWildcards(const std::string& pattern);

// A glob with the names in front of its first wildcard as they stand: `is_there` is asked of each
// path up to a name with "*", "?", "[", "{" or "\\". So "fold[1]/a*" lists the folder that is
// called so, where there is one. None: the pattern is the path of one file.
std::optional<std::string> LiteralFirst(const std::string& pattern,
                                        absl::FunctionRef<bool(const std::string& path)> is_there);

}  // namespace penstock
