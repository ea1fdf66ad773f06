// The files that a command reads: of this machine and, with the credentials of the user's environment, at addresses (s3://, gs://, http://).
//
// Threads:  one.
// Owns:     connections, once there is an address; files that were opened must be gone before it is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "io/remote/remote_options.h"

namespace penstock::ctl {

class NamedFiles {
 public:
  // What the patterns name, as MatchFiles() has it; an address stands for itself, or is a glob of its bucket's objects. InvalidArgument where
  // the environment's settings for addresses are wrong.
  static absl::StatusOr<std::unique_ptr<NamedFiles>> Match(const std::vector<std::string>& patterns,
                                                           std::vector<std::string>* others);

  // What the environment says of addresses, as of a process' own daemon: the user reads what he may read anyway.
  static absl::StatusOr<RemoteOptions> Options();

  // In the byte order of their paths.
  const std::vector<ListedFile>& files() const { return files_; }
  // Of all of them.
  uint64_t bytes() const;
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const ListedFile& file);
  FileSystem& system() { return far_ != nullptr ? *far_ : LocalFileSystem(); }

 private:
  absl::Status AddFar(const std::string& pattern);

  std::unique_ptr<FileSystem> far_;  // null: no address was named
  std::vector<ListedFile> files_;
};

}  // namespace penstock::ctl
