#include "io/inflate/compressed_input.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "io/file/damage.h"

namespace penstock {
namespace {

// The kernel is told of the file's next bytes so often, a part ahead.
constexpr uint64_t kAnnouncedBytes = 256 << 10;

}  // namespace

bool CompressedInput::Borrow(size_t bytes) {
  const uint64_t begin = offset();
  const size_t kept = std::min<uint64_t>(begin, kKeptBytes);
  const absl::Span<const uint8_t> near = file_->Near(begin - kept, kept + piece_bytes_);
  if (near.size() < kept + std::min<uint64_t>(bytes, file_->size() - begin)) return false;
  begin_ = near.data() + kept;
  end_ = near.data() + near.size();
  next_read_ = begin + size();
  return true;
}

absl::Status CompressedInput::Ensure(size_t bytes) {
  if (size() >= bytes || next_read_ == file_->size()) return absl::OkStatus();
  if (may_borrow_ && Borrow(bytes)) return absl::OkStatus();
  const size_t kept = std::min<uint64_t>(offset(), kKeptBytes);
  const size_t left = size();
  std::memmove(buffer_.get(), begin_ - kept, kept + left);
  begin_ = buffer_.get() + kept;
  end_ = begin_ + left;
  uint8_t* const to = buffer_.get() + kept + left;
  const size_t want = std::min<uint64_t>(piece_bytes_ - left, file_->size() - next_read_);
  absl::StatusOr<size_t> count = file_->ReadAt(next_read_, absl::MakeSpan(to, want));
  if (!count.ok()) return count.status();
  if (*count < want) {
    return FileShrunkError(absl::StrCat("the file became shorter than its ", file_->size(),
                                        " bytes while it was read (", file_->path(), ", offset ",
                                        next_read_ + *count, ")"));
  }
  end_ += want;
  next_read_ += want;
  const uint64_t asked = (next_read_ - want) / kAnnouncedBytes;
  if (next_read_ < file_->size() && (asked != next_read_ / kAnnouncedBytes || next_read_ == want))
    file_->WillNeed(next_read_, 2 * kAnnouncedBytes);
  return absl::OkStatus();
}

}  // namespace penstock
