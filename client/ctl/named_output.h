// Where a command writes TFRecords: files of this machine or, with the credentials of the user's environment, objects at addresses (s3://, gs://).
//
// Threads:  one; what it creates may be written by threads of their own.
// Owns:     a share of what its objects are written by.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "io/record/tfrecord_writer.h"
#include "io/remote/remote_client.h"

namespace penstock::ctl {

class NamedOutput {
 public:
  // `path`: of what is to be written, or its folder. InvalidArgument where the environment's settings for addresses are wrong.
  static absl::StatusOr<NamedOutput> For(const std::string& path);

  bool is_far() const { return client_ != nullptr; }
  // Replaces what is there at Close().
  absl::StatusOr<std::unique_ptr<TfrecordWriter>> Create(const std::string& path) const;
  // The names in a folder.
  absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder) const;

 private:
  std::shared_ptr<RemoteClient> client_;  // null: files
};

}  // namespace penstock::ctl
