// A numbered set of TFRecord files, such as chess-00000-of-00008.tfrecord to
// chess-00007-of-00008.tfrecord.
//
// Threads:  Create() and Close() from one thread; between them each shard may be written by a
//           thread of its own.
// Owns:     the open files; without Close() none of them stays behind.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/record/tfrecord_writer.h"

namespace penstock::ctl {

class ShardSet {
 public:
  // Makes the folder if needed; it may be an address (s3://bucket/folder), for at most 64 shards. Refuses one that holds shards of this stem in another number, since
  // a glob would read both sets.
  static absl::StatusOr<ShardSet> Create(const std::string& directory, const std::string& stem,
                                         int num_shards);

  int size() const { return static_cast<int>(writers_.size()); }
  TfrecordWriter& operator[](int shard) { return *writers_[shard]; }

  absl::Status Close();

 private:
  std::vector<std::unique_ptr<TfrecordWriter>> writers_;
};

}  // namespace penstock::ctl
