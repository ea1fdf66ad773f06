#include "server/io/byte_window.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "server/base/arena.h"

namespace penstock {
namespace {

// A buffer above this is made small again once its bytes are gone.
constexpr size_t kLargeBytes = 4 << 20;

}  // namespace

void ByteWindow::MakeRoom() {
  const size_t live = size();
  if (begin_ > 0) std::memmove(buffer_.get(), data(), live);
  begin_ = 0;
  end_ = live;
  size_t capacity = std::max(capacity_, kPieceBytes);
  if (live > capacity / 2) capacity *= 2;
  if (capacity > kLargeBytes && live < kPieceBytes / 2) capacity = kPieceBytes;
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

absl::Status ByteWindow::DropAll() {
  do {
    Drop(size());
    if (absl::Status status = Ensure(1); !status.ok()) return status;
  } while (size() > 0);
  return absl::OkStatus();
}

}  // namespace penstock
