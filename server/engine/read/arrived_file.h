// A file of another machine as far as its bytes have arrived: a read that would have to wait is an
// error, which says what is missing, so that who reads can have it fetched and begin again.
//
// Threads:  one at a time.
// Owns:     nothing; the file must outlive it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/far_file.h"

namespace penstock {

class ArrivedFile final : public RandomAccessFile {
 public:
  explicit ArrivedFile(FarFile& file) : file_(file) {}

  const std::string& path() const override { return file_.path(); }
  uint64_t size() const override { return file_.size(); }
  FileVersion version() const override { return file_.version(); }

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<uint8_t> out) override {
    if (std::optional<absl::StatusOr<size_t>> read = file_.ReadFetched(offset, out))
      return *std::move(read);
    missing_offset_ = offset;
    missing_bytes_ = out.size();
    return absl::UnavailableError("not here yet");
  }

  // As FarFile::LendFetched().
  std::shared_ptr<const uint8_t> Lend(uint64_t offset, uint64_t bytes) {
    return file_.LendFetched(offset, bytes);
  }

  // Of the last read that would have had to wait; 0: none did.
  uint64_t missing_offset() const { return missing_offset_; }
  uint64_t missing_bytes() const { return missing_bytes_; }

 private:
  FarFile& file_;
  uint64_t missing_offset_ = 0;
  uint64_t missing_bytes_ = 0;
};

}  // namespace penstock
