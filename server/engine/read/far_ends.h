// The beginnings and ends of files on other machines, which a fingerprint is made of: asked for
// many files at a time.
//
// Threads:  one, which waits for the network, until it is told to stop (base/stop_flag.h): Open()
//           throws Stopped then.
// Owns:     the files of the present window and of the next one.
// Limits:   two windows of 256 files: the second is asked for before the first has come, so that
//           requests are under way all the time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "server/engine/read/file_table.h"
#include "server/engine/tasks/all_ended.h"

namespace penstock {

class FarEnds {
 public:
  // Both must outlive it.
  FarEnds(FileSystem& files, const Manifest& manifest) : files_(files), manifest_(manifest) {}

  // The file of that number, an address, with its ends at hand. REQUIRES: numbers that grow.
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(size_t file);

 private:
  struct Window {
    size_t begin = 0;
    std::vector<absl::StatusOr<std::shared_ptr<RandomAccessFile>>> open;
    AllEnded ends;  // first to go: what it waits for is the files'
    bool has_ended = false;
  };

  std::unique_ptr<Window> Ask(size_t begin);

  FileSystem& files_;
  const Manifest& manifest_;
  std::unique_ptr<Window> present_;  // null until the first file
  std::unique_ptr<Window> next_;     // null behind the last
};

}  // namespace penstock
