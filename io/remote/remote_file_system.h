// The files of this machine and those at addresses, as one: an address stands wherever a path or a glob does.
//
//     "/data/a.tfrecord"     the local files it was given
//     "s3://bucket/a/*.gz"   listed, opened and read over the network
//
// An object that was listed is opened without asking again: its size and tag came with the list, and every range says which tag it must have.
//
// Threads:  safe from any thread. List() and Open() wait for the network.
// Owns:     the pool, the fetcher, and what is known of objects; files keep their objects' bytes, and must be gone before this is.
// Limits:   kKnownMax objects are remembered; who asks for another one asks the server again.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/far_file.h"
#include "io/http/range_fetcher.h"
#include "io/remote/remote_bytes.h"
#include "io/remote/remote_client.h"
#include "io/remote/span_pool.h"

namespace penstock {

class RemoteFileSystem final : public JoinedFileSystem {
 public:
  // `local` must outlive it.
  RemoteFileSystem(FileSystem& local, RemoteOptions options,
                   Environment environment = ProcessEnvironment());

  FileSystem& local() const override { return local_; }
  Disk* disk() override { return local_.disk(); }
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override;
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> OpenListed(const ListedFile& file) override;
  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override;

  FetcherStats stats() const { return fetcher_.stats(); }
  uint64_t pool_bytes();

 private:
  static constexpr size_t kKnownMax = 1'000'000;

  absl::StatusOr<std::shared_ptr<RandomAccessFile>> OpenObject(const std::string& path,
                                                               ObjectState state);
  void Remember(const std::string& path, const ObjectState& state);

  FileSystem& local_;
  RemoteClient client_;
  SpanPool pool_;
  std::mutex mutex_;
  std::unordered_map<std::string, ObjectState> known_;  // under mutex_; of listed paths
  std::unordered_map<std::string, std::weak_ptr<RemoteBytes>>
      open_;              // under mutex_; by path and tag
  RangeFetcher fetcher_;  // last: what it ends looks at the others
};

}  // namespace penstock
