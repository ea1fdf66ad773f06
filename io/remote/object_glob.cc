#include "io/remote/object_glob.h"

#include <fnmatch.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr size_t kChoicesMax = 256;

// The part of both up to the next "/" and what is behind it.
std::pair<std::string, std::string> Cut(const std::string& text) {
  const size_t slash = text.find('/');
  if (slash == std::string::npos) return {text, ""};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

bool MatchesFrom(const std::string& glob, const std::string& name, int depth) {
  const auto [glob_part, glob_rest] = Cut(glob);
  const bool glob_ends = !absl::StrContains(glob, '/');
  if (glob_part == "**" && depth < 64) {
    if (glob_ends) return !absl::StartsWith(name, ".");
    // No folder, or one more.
    if (MatchesFrom(glob_rest, name, depth + 1)) return true;
    const auto [part, rest] = Cut(name);
    return absl::StrContains(name, '/') && !absl::StartsWith(part, ".") &&
           MatchesFrom(glob, rest, depth + 1);
  }
  const auto [name_part, name_rest] = Cut(name);
  if (fnmatch(glob_part.c_str(), name_part.c_str(), FNM_PERIOD) != 0) return false;
  const bool name_ends = !absl::StrContains(name, '/');
  if (glob_ends || name_ends) return glob_ends && name_ends;
  return MatchesFrom(glob_rest, name_rest, depth);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandBraces(const std::string& glob) {
  std::vector<std::string> done;
  std::vector<std::string> left = {glob};
  while (!left.empty()) {
    if (done.size() + left.size() > kChoicesMax) {
      return absl::InvalidArgumentError(absl::StrCat("expected at most ", kChoicesMax,
                                                     " choices of braces in a glob (", glob, ")"));
    }
    const std::string text = std::move(left.back());
    left.pop_back();
    const size_t open = text.find('{');
    size_t close = std::string::npos;
    std::vector<size_t> commas;
    int depth = 0;
    for (size_t i = open; i < text.size(); ++i) {
      if (text[i] == '{') ++depth;
      if (text[i] == ',' && depth == 1) commas.push_back(i);
      if (text[i] == '}' && --depth == 0) {
        close = i;
        break;
      }
    }
    if (open == std::string::npos || close == std::string::npos) {
      done.push_back(text);
      continue;
    }
    commas.push_back(close);
    size_t begin = open + 1;
    for (const size_t end : commas) {
      left.push_back(absl::StrCat(text.substr(0, open), text.substr(begin, end - begin),
                                  text.substr(close + 1)));
      begin = end + 1;
    }
  }
  return done;
}

bool MatchesGlob(const std::string& glob, const std::string& name) {
  return MatchesFrom(glob, name, 0);
}

std::string LiteralPrefix(const std::string& glob) {
  return glob.substr(0, glob.find_first_of("*?["));
}

}  // namespace penstock
