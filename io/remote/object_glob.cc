#include "io/remote/object_glob.h"

#include <fnmatch.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace penstock {
namespace {

constexpr size_t kChoicesMax = 256;

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
  const std::vector<std::string> parts = absl::StrSplit(glob, '/');
  const std::vector<std::string> folders = absl::StrSplit(name, '/');
  const auto is_hidden = [&folders](size_t at) { return absl::StartsWith(folders[at], "."); };
  size_t part = 0, at = 0;
  // The last "**" and what it reaches to. Those before it reach no further than they must: what it cannot go through, a hidden folder, they cannot
  // either.
  size_t through = std::string::npos, to = 0;
  while (true) {
    if (part == parts.size() && at == folders.size()) return true;
    if (part < parts.size() && parts[part] == "**") {
      if (part + 1 < parts.size()) {
        through = part++;
        to = at;
        continue;
      }
      if (at < folders.size() && !is_hidden(at)) return true;
    } else if (part < parts.size() && at < folders.size() &&
               fnmatch(parts[part].c_str(), folders[at].c_str(), FNM_PERIOD) == 0) {
      ++part;
      ++at;
      continue;
    }
    // One folder more.
    if (through == std::string::npos || to == folders.size() || is_hidden(to)) return false;
    at = ++to;
    part = through + 1;
  }
}

std::string LiteralPrefix(const std::string& glob) {
  return glob.substr(0, glob.find_first_of("*?["));
}

}  // namespace penstock
