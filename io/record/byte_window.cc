#include "io/record/byte_window.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/arena.h"

namespace penstock {
namespace {

// A buffer above this is made small again once its bytes are gone.
constexpr size_t kLargeBytes = 4 << 20;

}  // namespace

void ByteWindow::MakeRoom() {
  const size_t live = size();
  const size_t history = stream_->history_bytes();
  const size_t kept = std::max(live, std::min(history, end_));
  if (kept < end_) std::memmove(buffer_.get(), buffer_.get() + end_ - kept, kept);
  begin_ = kept - live;
  end_ = kept;
  const size_t least = kPieceBytes + history;
  size_t capacity = std::max(capacity_, least);
  if (live > capacity / 2) capacity *= 2;
  if (capacity > kLargeBytes && live < kPieceBytes / 2) capacity = least;
  if (capacity == capacity_) return;
  auto* memory = static_cast<uint8_t*>(std::realloc(buffer_.release(), capacity + Arena::kPadding));
  if (memory == nullptr) throw std::bad_alloc();
  buffer_.reset(memory);
  capacity_ = capacity;
}

absl::Status ByteWindow::Ensure(size_t bytes) {
  while (size() < bytes) {
    if (!error_.ok()) return error_;
    if (ended_) break;
    MakeRoom();
    const size_t want = std::max(kPieceBytes, bytes - size());
    absl::StatusOr<size_t> count =
        stream_->Read(absl::MakeSpan(buffer_.get() + end_, std::min(capacity_ - end_, want)));
    if (!count.ok()) {
      error_ = count.status();
    } else {
      end_ += *count;
      ended_ = *count == 0;
    }
  }
  return absl::OkStatus();
}

absl::Status ByteWindow::Skip(uint64_t bytes) {
  while (true) {
    const uint64_t at_hand = std::min<uint64_t>(bytes, size());
    Drop(at_hand);
    bytes -= at_hand;
    if (bytes > 0) bytes -= stream_->SkipUnread(bytes);
    if (bytes == 0) return absl::OkStatus();
    if (absl::Status status = Ensure(1); !status.ok()) return status;
    if (size() == 0) return absl::OkStatus();
  }
}

}  // namespace penstock
