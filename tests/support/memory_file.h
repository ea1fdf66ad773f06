// A file in memory that can become shorter than it was, and fail.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "server/base/file.h"

namespace penstock::test {

class MemoryFile final : public RandomAccessFile {
 public:
  explicit MemoryFile(std::string bytes) : bytes_(std::move(bytes)), size_(bytes_.size()) {}
  const std::string& path() const override { return path_; }
  uint64_t size() const override { return size_; }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<uint8_t> out) override {
    if (failing_) return absl::UnavailableError("the disk is gone");
    if (out.empty() || offset >= bytes_.size()) return 0;
    const size_t count = std::min<size_t>(out.size(), bytes_.size() - offset);
    std::memcpy(out.data(), bytes_.data() + offset, count);
    bytes_read_ += count;
    return count;
  }
  void Shrink(size_t size) { bytes_.resize(size); }
  void Fail() { failing_ = true; }
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  const std::string path_ = "memory";
  std::string bytes_;
  const uint64_t size_;
  bool failing_ = false;
  uint64_t bytes_read_ = 0;
};

inline std::shared_ptr<MemoryFile> InMemory(std::string bytes) {
  return std::make_shared<MemoryFile>(std::move(bytes));
}

}  // namespace penstock::test
