// A file whose bytes are looked at where they are mapped, as long as that waits for no disk.
//
// Threads:  as RandomAccessFile.
// Owns:     a share of the file. The table must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/file.h"
#include "server/engine/read/file_table.h"

namespace penstock {

class NearFile final : public RandomAccessFile {
 public:
  // `opened`: what table.Open(number) has given.
  NearFile(std::shared_ptr<RandomAccessFile> opened, FileTable& table, uint32_t number)
      : opened_(std::move(opened)), table_(table), number_(number) {}

  const std::string& path() const override { return opened_->path(); }
  uint64_t size() const override { return opened_->size(); }
  FileVersion version() const override { return opened_->version(); }
  uint64_t SizeNow() const override { return opened_->SizeNow(); }
  FileVersion VersionNow() const override { return opened_->VersionNow(); }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<uint8_t> out) override {
    return opened_->ReadAt(offset, out);
  }
  void WillNeed(uint64_t offset, uint64_t bytes) override { opened_->WillNeed(offset, bytes); }
  int descriptor() const override { return opened_->descriptor(); }

  absl::Span<const uint8_t> Near(uint64_t offset, size_t bytes) override;
  absl::Status CheckNear() const override;

 private:
  const std::shared_ptr<RandomAccessFile> opened_;
  FileTable& table_;
  const uint32_t number_;
};

}  // namespace penstock
