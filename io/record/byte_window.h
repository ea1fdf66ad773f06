// A window that moves over a stream: the bytes from some offset on, as many as are asked for.
//
// Threads:  one thread.
// Owns:     the stream and one buffer. data() is valid up to the next Ensure().
// Limits:   the buffer grows as bytes arrive, to at most twice what is asked for and there: a
//           length that only claims to be large allocates nothing. A large buffer is given back.
// Cost:     each refill moves what is left of the window to the buffer's front, and as much of what
//           came before as the stream refers to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "io/inflate/byte_stream.h"

namespace penstock {

class ByteWindow {
 public:
  // Enough that a call of the decompressor costs little, and little enough for a core's cache.
  static constexpr size_t kPieceBytes = 128 << 10;

  // `plain_end`: how many bytes the stream has, where that is known.
  ByteWindow(std::unique_ptr<ByteStream> stream, uint64_t plain_end)
      : stream_(std::move(stream)), plain_end_(plain_end) {}

  const uint8_t* data() const { return buffer_.get() + begin_; }
  size_t size() const { return end_ - begin_; }
  uint64_t offset() const { return stream_->plain_offset() - size(); }
  size_t capacity() const { return capacity_; }
  uint64_t plain_end() const { return plain_end_; }
  const ByteStream& stream() const { return *stream_; }

  // Moves the window forward. REQUIRES: bytes <= size().
  void Drop(size_t bytes) { begin_ += bytes; }

  // Makes at least `bytes` available, or all that come before the end. The stream's error only
  // where there are fewer because of it; those stay available.
  absl::Status Ensure(size_t bytes);

  // Moves the window forward by `bytes`, or to the end. What is not at hand is not read where the
  // stream can do without.
  absl::Status Skip(uint64_t bytes);

  // Passes over the rest of the stream.
  absl::Status DropAll() { return Skip(~uint64_t{0}); }

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };

  void MakeRoom();

  const std::unique_ptr<ByteStream> stream_;
  const uint64_t plain_end_;
  std::unique_ptr<uint8_t, Free> buffer_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool ended_ = false;
  absl::Status error_;
};

}  // namespace penstock
