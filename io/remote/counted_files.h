// The files of a RemoteFileSystem as one pipeline sees them: what it fetches is counted.
//
// Threads:  safe from any thread.
// Owns:     its counters, which files that it has opened keep; the file system must outlive it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/far_file.h"

namespace penstock {

class RemoteFileSystem;

class CountedFiles final : public JoinedFileSystem {
 public:
  explicit CountedFiles(RemoteFileSystem& files) : files_(files) {}

  // From zero on; what was opened before counts for nobody any more.
  void BeginAnew();

  FileSystem& local() const override;
  FileSystem& CountedFor(const std::string& pipeline) override;
  std::optional<FetchNumbers> numbers() const override;
  std::shared_ptr<void> Need(const std::vector<ListedFile>& files) override;
  std::optional<uint64_t> TrustedTag(const ListedFile& file) override;
  Disk* disk() override;
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override;
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> OpenListed(const ListedFile& file) override;
  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override;
  std::vector<absl::StatusOr<std::vector<ListedFile>>> ListEach(
      const std::vector<std::string>& patterns) override;

 private:
  std::shared_ptr<FetchCounters> counters() const;

  RemoteFileSystem& files_;
  mutable std::mutex mutex_;
  std::shared_ptr<FetchCounters> counters_ = std::make_shared<FetchCounters>();  // under mutex_
};

}  // namespace penstock
