// The beginnings and ends of files on other machines, which a fingerprint is made of: asked for
// many files at a time.
//
// Threads:  one, which waits for the network, until it is told to stop (base/stop_flag.h): Open()
//           throws Stopped then.
// Owns:     the files of the present window.
// Limits:   256 files at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "server/engine/read/file_table.h"

namespace penstock {

class FarEnds {
 public:
  // Both must outlive it.
  FarEnds(FileSystem& files, const Manifest& manifest) : files_(files), manifest_(manifest) {}

  // The file of that number, an address, with its ends at hand. REQUIRES: numbers that grow.
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(size_t file);

 private:
  FileSystem& files_;
  const Manifest& manifest_;
  size_t begin_ = 0;  // of the window
  std::vector<absl::StatusOr<std::shared_ptr<RandomAccessFile>>> open_;
};

}  // namespace penstock
