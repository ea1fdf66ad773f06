#include "server/engine/order/file_stream.h"

#include <algorithm>

#include "absl/types/span.h"

namespace penstock {

FileStream::FileStream(FrontContext& context, const ReadFormat& format, uint32_t file,
                       FileStart start, uint64_t first_bytes)
    : context_(context) {
  for (ReadRequest& request : requests_) {
    request.files = &context.files;
    request.file = file;
    request.format = &format;
    request.stream = &stream_;
    request.ordinal = start.ordinal;
  }
  at_hand().next_offset = start.offset;
  Request(first_bytes);
}

Pulled FileStream::NextOfLaterRead(RecordRef* record) {
  while (next_ == at_hand().records.size()) {
    const Pulled result = NextRead();
    if (result != Pulled::kSome) return result;
  }
  *record = at_hand().records[next_++];
  return Pulled::kSome;
}

uint64_t FileStream::left_bytes() const {
  const uint64_t size = context_.files.manifest()[file()].size_bytes;
  if (at_hand().format->compression != Compression::kNone) return size;
  return size - std::min(size, at_hand().next_offset);
}

bool FileStream::Close() {
  if (requested_ && !ahead().done.load(std::memory_order_acquire))
    return false;  // SYNC chunk-ready
  if (requested_) context_.store.Release(ahead().records);
  requested_ = false;
  context_.store.Release(absl::MakeConstSpan(at_hand().records).subspan(next_));
  next_ = at_hand().records.size();
  return true;
}

void FileStream::Request(uint64_t max_bytes) {
  ahead().offset = at_hand().next_offset;
  ahead().ordinal = at_hand().ordinal + at_hand().records.size();
  ahead().expect_late = at_hand().next_is_late;
  ahead().max_bytes = max_bytes;
  ahead().worker = at_hand().worker;
  ahead().done.store(false, std::memory_order_relaxed);
  requested_ = true;
  context_.reads.Push(&ahead());
}

Pulled FileStream::NextRead() {
  // The damage of a read lies behind its records.
  damage_.insert(damage_.end(), at_hand().damage.begin(), at_hand().damage.end());
  at_hand().damage.clear();
  if (!at_hand().error.ok()) return Pulled::kFailed;
  if (at_hand().end_of_file) return Pulled::kEnd;
  if (!ahead().done.load(std::memory_order_acquire)) return Pulled::kBlocked;  // SYNC chunk-ready
  requested_ = false;
  current_ = 1 - current_;
  next_ = 0;
  if (at_hand().error.ok() && !at_hand().end_of_file) Request();
  return Pulled::kSome;
}

}  // namespace penstock
