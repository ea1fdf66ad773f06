#include "io/record/line_stream.h"

#include "absl/strings/str_cat.h"

namespace penstock {

std::string LongLineMessage() {
  return absl::StrCat("line longer than limit: more than ", kMaxRecordBytes, " bytes");
}

void LineStream::DropLongLine(RecordChunk* chunk) {
  const uint64_t offset = window().offset();
  if (!skips_damage()) {
    return Fail(chunk, offset, DamageReason::kTooLong, absl::DataLossError(LongLineMessage()));
  }
  while (true) {
    const void* const line_end =
        window().size() == 0 ? nullptr : std::memchr(window().data(), '\n', window().size());
    if (line_end != nullptr) {
      window().Drop(static_cast<const uint8_t*>(line_end) - window().data() + 1);
      break;
    }
    window().Drop(window().size());
    const absl::Status status = window().Ensure(1);
    if (!status.ok()) return EndOfStream(chunk, offset, status);
    if (window().size() == 0) break;
  }
  chunk->damage.push_back({offset, window().offset() - offset, DamageReason::kTooLong});
}

}  // namespace penstock
