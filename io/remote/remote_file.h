// An object as a file.
//
// Threads:  safe from any thread. ReadAt() waits for the network where bytes are not near: who must
//           not wait asks HasFetched() first.
// Owns:     a share of the object's bytes.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/far_file.h"
#include "io/remote/remote_bytes.h"

namespace penstock {

class RemoteFile final : public FarFile {
 public:
  // `counters`: of the pipeline that reads it; may be null.
  RemoteFile(std::string path, FileVersion version, std::shared_ptr<RemoteBytes> bytes,
             std::shared_ptr<FetchCounters> counters)
      : path_(std::move(path)),
        version_(version),
        bytes_(std::move(bytes)),
        counters_(std::move(counters)) {}
  // What was fetched for it and has not been read may go.
  ~RemoteFile() override { bytes_->GiveUpAll(this); }

  const std::string& path() const override { return path_; }
  uint64_t size() const override { return bytes_->state().size; }
  FileVersion version() const override { return version_; }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<uint8_t> out) override;
  bool HasFetched(uint64_t offset, uint64_t bytes) const override {
    return bytes_->Has(offset, bytes);
  }
  void Fetch(uint64_t offset, uint64_t bytes, Completion arrived) override {
    Ask(offset, bytes, /*alone=*/false, std::move(arrived));
  }
  void FetchAlone(uint64_t offset, uint64_t bytes, Completion arrived) override {
    Ask(offset, bytes, /*alone=*/true, std::move(arrived));
  }
  std::optional<absl::StatusOr<size_t>> ReadFetched(uint64_t offset,
                                                    absl::Span<uint8_t> out) override;
  std::shared_ptr<const uint8_t> LendFetched(uint64_t offset, uint64_t bytes) override;
  uint64_t read_to() const override { return read_to_.load(std::memory_order_relaxed); }
  void WillNeed(uint64_t offset, uint64_t bytes) override {
    bytes_->WillNeed(offset, bytes, counters_);
  }

 private:
  class Waiting;

  void Ask(uint64_t offset, uint64_t bytes, bool alone, Completion arrived);

  const std::string path_;
  const FileVersion version_;
  const std::shared_ptr<RemoteBytes> bytes_;
  const std::shared_ptr<FetchCounters> counters_;
  std::atomic<uint64_t> read_to_{0};  // behind what was read last
};

}  // namespace penstock
