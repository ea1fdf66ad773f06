#include "client/ctl/files/match_files.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/literal_glob.h"

namespace penstock::ctl {

absl::StatusOr<std::vector<std::string>> MatchFiles(const std::vector<std::string>& patterns,
                                                    std::vector<std::string>* others) {
  std::vector<std::string> files;
  for (const std::string& pattern : patterns) {
    struct stat found;
    // A shell has expanded what is the name of a file: "[1]" in it is no wildcard.
    if (!absl::EndsWith(pattern, kIndexSuffix) && stat(pattern.c_str(), &found) == 0 &&
        S_ISREG(found.st_mode)) {
      files.push_back(pattern);
      continue;
    }
    const auto is_there = [](const std::string& path) {
      struct stat info;
      return lstat(path.c_str(), &info) == 0;
    };
    // What is there and no file is as good as a glob of one.
    const std::string wild = LiteralFirst(pattern, is_there).value_or(pattern);
    glob_t matches = {};
    glob(wild.c_str(), kGlobFlags, nullptr, &matches);
    bool matched = false;
    for (size_t i = 0; i < matches.gl_pathc; ++i) {
      struct stat info;
      // A wildcard that means data does not mean the indices beside it, whether it is expanded here
      // or by a shell.
      if (absl::EndsWith(matches.gl_pathv[i], kIndexSuffix)) {
        if (pattern == matches.gl_pathv[i]) matched = true;
        continue;
      }
      if (stat(matches.gl_pathv[i], &info) == 0 && S_ISREG(info.st_mode)) {
        files.emplace_back(matches.gl_pathv[i]);
        matched = true;
      } else if (others != nullptr) {
        others->emplace_back(matches.gl_pathv[i]);
        matched = true;
      }
    }
    globfree(&matches);
    if (!matched) {
      if (stat(pattern.c_str(), &found) == 0 && S_ISDIR(found.st_mode)) {
        return absl::NotFoundError(absl::StrCat("\"", pattern, "\" is a folder: \"", pattern,
                                                absl::EndsWith(pattern, "/") ? "" : "/",
                                                "*\" names the files in it"));
      }
      return absl::NotFoundError(absl::StrCat("no file matches \"", pattern, "\""));
    }
  }
  if (files.empty() && (others == nullptr || others->empty()))
    return absl::NotFoundError("no file but indices of Penstock");
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

}  // namespace penstock::ctl
