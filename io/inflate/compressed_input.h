// The compressed side of a ByteStream: a window that moves over the file, or over its bytes where
// they lie in memory.
//
// Threads:  one thread.
// Owns:     one buffer of `piece_bytes`; a share of the file.
// Cost:     one read a piece, or none; what follows is announced to the kernel, 256 KiB at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "base/file.h"

namespace penstock {

class CompressedInput {
 public:
  // `may_borrow`: the bytes may change while they are looked at.
  CompressedInput(std::shared_ptr<RandomAccessFile> file, size_t piece_bytes, bool may_borrow)
      : file_(std::move(file)),
        piece_bytes_(piece_bytes),
        may_borrow_(may_borrow),
        buffer_(new uint8_t[kKeptBytes + piece_bytes]),
        begin_(buffer_.get()),
        end_(begin_) {}

  // The bytes at hand that are not consumed.
  const uint8_t* data() const { return begin_; }
  size_t size() const { return end_ - begin_; }
  void Consume(size_t bytes) { begin_ += bytes; }
  // Takes back the last bytes that were consumed. REQUIRES: bytes <= kKeptBytes and consumed.
  void GiveBack(size_t bytes) { begin_ -= bytes; }

  static constexpr size_t kKeptBytes = 8;

  // Where in the file data() is.
  uint64_t offset() const { return next_read_ - size(); }
  bool at_end() const { return size() == 0 && next_read_ == file_->size(); }

  // Makes at least `bytes` available, or all that the file has left. REQUIRES: bytes <=
  // piece_bytes.
  absl::Status Ensure(size_t bytes);

  size_t piece_bytes() const { return piece_bytes_; }
  RandomAccessFile& file() const { return *file_; }

 private:
  bool Borrow(size_t bytes);

  const std::shared_ptr<RandomAccessFile> file_;
  const size_t piece_bytes_;
  const bool may_borrow_;
  const std::unique_ptr<uint8_t[]> buffer_;
  // In the buffer, or in the file's own memory. In front of begin_ lie kKeptBytes more, or all that
  // were consumed.
  const uint8_t* begin_;
  const uint8_t* end_;
  uint64_t next_read_ = 0;
};

}  // namespace penstock
