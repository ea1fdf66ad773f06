// Where a file is written that takes the place of another one when it is whole: beside it, as
// PATH.partial. A symbolic link stays, and what it leads to is replaced; a pipe or a device is
// written to as it is, for a name that is moved over it would end it.
//
// Threads:  any.
// Owns:     nothing; who writes opens partial().
// Cost:     a stat, and a rename at the end.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace penstock {

class ReplacedFile {
 public:
  explicit ReplacedFile(const std::string& path);

  // What to open and write.
  const std::string& partial() const { return partial_; }

  // Gives what was written its name, or removes it where that fails.
  absl::Status Replace() const;
  // Removes what was written.
  void Discard() const;

 private:
  std::string path_;
  std::string partial_;
};

}  // namespace penstock
