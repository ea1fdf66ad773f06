// What a ByteStream gives, read in pieces of any size: the memory in front of each one holds what
// the stream refers to, and nothing more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/inflate/byte_stream.h"

namespace penstock::test {

class StreamPieces {
 public:
  explicit StreamPieces(std::unique_ptr<ByteStream> stream) : stream_(std::move(stream)) {}

  // The next bytes, valid until the next call.
  absl::StatusOr<absl::string_view> Read(size_t bytes) {
    if (memory_.size() > stream_->history_bytes())
      memory_.erase(memory_.begin(), memory_.end() - stream_->history_bytes());
    const size_t history = memory_.size();
    memory_.resize(history + bytes);
    const absl::StatusOr<size_t> count = stream_->Read(absl::MakeSpan(memory_).subspan(history));
    memory_.resize(history + (count.ok() ? *count : 0));
    if (!count.ok()) return count.status();
    return absl::string_view(reinterpret_cast<const char*>(memory_.data()) + history, *count);
  }

  const ByteStream& stream() const { return *stream_; }

 private:
  const std::unique_ptr<ByteStream> stream_;
  std::vector<uint8_t> memory_;
};

}  // namespace penstock::test
