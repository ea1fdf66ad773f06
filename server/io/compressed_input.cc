#include "server/io/compressed_input.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/io/damage.h"

namespace penstock {
namespace {

// The kernel is told of the file's next bytes so often, a part ahead.
constexpr uint64_t kAnnouncedBytes = 256 << 10;

}  // namespace

absl::Status CompressedInput::Ensure(size_t bytes) {
  if (size() >= bytes || next_read_ == file_->size()) return absl::OkStatus();
  const size_t kept = std::min(begin_, kKeptBytes);
  std::memmove(buffer_.get(), data() - kept, kept + size());
  end_ -= begin_ - kept;
  begin_ = kept;
  const size_t want =
      std::min<uint64_t>(kKeptBytes + piece_bytes_ - end_, file_->size() - next_read_);
  absl::StatusOr<size_t> count =
      file_->ReadAt(next_read_, absl::MakeSpan(buffer_.get() + end_, want));
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
