#include "base/replaced_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/file_error.h"

namespace penstock {

ReplacedFile::ReplacedFile(const std::string& path) : path_(path) {
  struct stat found;
  if (stat(path.c_str(), &found) == 0) {
    if (!S_ISREG(found.st_mode)) {
      partial_ = path_;
      return;
    }
    const std::unique_ptr<char, decltype(&free)> target(realpath(path.c_str(), nullptr), free);
    if (target != nullptr) path_ = target.get();
  }
  partial_ = path_ + ".partial";
}

absl::Status ReplacedFile::Replace() const {
  if (partial_ == path_ || rename(partial_.c_str(), path_.c_str()) == 0) return absl::OkStatus();
  const int error = errno;
  Discard();
  return FileError(error, absl::StrCat("cannot create ", path_));
}

void ReplacedFile::Discard() const {
  if (partial_ != path_) unlink(partial_.c_str());
}

}  // namespace penstock
