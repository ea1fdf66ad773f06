// The files of this machine and those at addresses, as one: an address stands wherever a path or a
// glob does.
//
//     "/data/a.tfrecord"     the local files it was given
//     "s3://bucket/a/*.gz"   listed, opened and read over the network
//
// An object that was listed is opened without asking again: its size and tag came with the list,
// and every range says which tag it must have.
//
// Threads:  safe from any thread. List() and Open() wait for the network.
// Owns:     the pool, the fetcher, and what is known of objects; files keep their objects' bytes,
//           and must be gone before this is.
// Limits:   kKnownMax objects are remembered; who asks for another one asks the server again. That
//           there is no index of an object is remembered for kAbsentNs at most, and until the
//           object is listed again. kCountedMax names of pipelines are counted apart, the others
//           together.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/far_file.h"
#include "io/http/range_fetcher.h"
#include "io/remote/cached_ranges.h"
#include "io/remote/counted_files.h"
#include "io/remote/object_disk.h"
#include "io/remote/remote_bytes.h"
#include "io/remote/remote_client.h"
#include "io/remote/span_pool.h"

namespace penstock {

class RemoteFileSystem final : public JoinedFileSystem {
 public:
  // `local` must outlive it.
  RemoteFileSystem(FileSystem& local, RemoteOptions options,
                   Environment environment = ProcessEnvironment());

  // Why there is no cache where one was asked for.
  const absl::Status& status() const { return status_; }

  FileSystem& local() const override { return local_; }
  // Null where nothing is kept on this machine either.
  Disk* disk() override { return disk_.get(); }
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override;
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> OpenListed(const ListedFile& file) override;
  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override;
  // kListsMax at a time, and one that comes several times once.
  std::vector<absl::StatusOr<std::vector<ListedFile>>> ListEach(
      const std::vector<std::string>& patterns) override;

  std::shared_ptr<void> Need(const std::vector<ListedFile>& files) override;
  // Of a strong ETag or a generation, where RemoteOptions::trusts_etags.
  std::optional<uint64_t> TrustedTag(const ListedFile& file) override;

  // The same for a pipeline: what it fetches counts there.
  using Counters = std::shared_ptr<FetchCounters>;
  std::shared_ptr<void> Need(const std::vector<ListedFile>& files, const Counters& counters);
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path,
                                                         const Counters& counters);
  // Without asking anybody; absent where the object is not known.
  std::optional<absl::StatusOr<std::shared_ptr<RandomAccessFile>>> OpenKnown(
      const ListedFile& file, const Counters& counters);
  FileSystem& CountedFor(const std::string& pipeline) override;
  // Of the whole process: requests, and memory.
  FetchNumbers NumbersOfAll();

  FetcherStats stats() const { return fetcher_.stats(); }
  uint64_t pool_bytes();

 private:
  static constexpr size_t kListsMax = 32;
  static constexpr size_t kAbsentMax = 65'536;
  static constexpr int64_t kAbsentNs = 10'000'000'000;
  static constexpr size_t kKnownMax = 1'000'000;
  static constexpr size_t kCountedMax = 4096;

  absl::StatusOr<std::shared_ptr<RandomAccessFile>> OpenObject(const std::string& path,
                                                               ObjectState state,
                                                               const Counters& counters);
  void Remember(const std::string& path, const ObjectState& state);
  // Absent where it is not known, or no longer the one that was listed.
  std::optional<ObjectState> KnownState(const ListedFile& file);
  // What was told of an index that is not there; OK where nothing is known.
  absl::Status Absence(const std::string& path);

  FileSystem& local_;
  const uint64_t memory_bytes_max_;
  const bool trusts_etags_;
  RemoteClient client_;
  std::unique_ptr<ObjectDisk> disk_;
  SpanPool pool_;
  std::mutex mutex_;
  std::unordered_map<std::string, ObjectState> known_;  // under mutex_; of listed paths
  struct Absent {
    absl::Status status;
    int64_t told_ns;
  };
  std::unordered_map<std::string, Absent> absent_;  // under mutex_; of paths of indices
  // Likewise, of those that are being looked for: the number of the look that counts. None: the
  // object was listed meanwhile.
  std::unordered_map<std::string, uint64_t> looks_;
  uint64_t look_number_ = 0;  // under mutex_
  std::unordered_map<std::string, std::weak_ptr<RemoteBytes>>
      open_;                                                      // under mutex_; by path and tag
  std::map<std::string, std::unique_ptr<CountedFiles>> counted_;  // under mutex_; by pipeline
  // Last: what they end looks at the others.
  RangeFetcher fetcher_;
  absl::Status status_;
  std::unique_ptr<CachedRanges> cached_;  // null: nothing is kept on a disk
};

}  // namespace penstock
