// A file in memory that can become shorter than it was, fail, and lend its bytes.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"

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
  // Now and then, each time in memory of its own.
  absl::Span<const uint8_t> Near(uint64_t offset, size_t bytes) override {
    if (!lends_ || random_() % 2 == 0 || offset >= bytes_.size()) return {};
    const auto begin = bytes_.begin() + static_cast<ptrdiff_t>(offset);
    lent_.emplace_back(
        begin, begin + static_cast<ptrdiff_t>(std::min<size_t>(bytes, bytes_.size() - offset)));
    return lent_.back();
  }
  void Lend() { lends_ = true; }
  size_t num_lent() const { return lent_.size(); }
  void Shrink(size_t size) { bytes_.resize(size); }
  void Fail() { failing_ = true; }
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  const std::string path_ = "memory";
  std::string bytes_;
  const uint64_t size_;
  bool failing_ = false;
  bool lends_ = false;
  std::minstd_rand random_;
  std::deque<std::vector<uint8_t>> lent_;
  uint64_t bytes_read_ = 0;
};

inline std::shared_ptr<MemoryFile> InMemory(std::string bytes) {
  return std::make_shared<MemoryFile>(std::move(bytes));
}

}  // namespace penstock::test
