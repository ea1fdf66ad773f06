// Indices beside the objects that they are of: "s3://bucket/.part-7.penstock-index". For who asks for it; nothing is uploaded unasked.
//
// Threads:  safe from any thread.
// Cost:     an index is held in memory until it has been sent.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "io/record/index_store.h"
#include "io/remote/remote_client.h"

namespace penstock {

class ObjectIndexStore final : public IndexStore {
 public:
  // Both must outlive it. `files` reads what `client` writes.
  ObjectIndexStore(FileSystem& files, RemoteClient& client) : files_(files), client_(client) {}

  std::vector<std::string> PlacesToRead(const std::string& data_path) const override;
  std::vector<std::string> PlacesToWrite(const std::string& data_path) const override;
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& place) override;
  absl::Status Write(const std::string& place, Writing write) override;

 private:
  FileSystem& files_;
  RemoteClient& client_;
};

}  // namespace penstock
