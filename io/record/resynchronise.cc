#include "io/record/resynchronise.h"

#include <algorithm>

#include "base/stop_flag.h"
#include "io/record/tfrecord_frame.h"

namespace penstock {
namespace {

// Of a place that is looked at, as StopLook counts it: of zero bytes each is a possible header.
constexpr uint64_t kPlaceWork = 8;

// Whether the window's first frame, whose length can be believed, is followed by another one or by
// the end of the file.
bool ChainHolds(ByteWindow& window, uint64_t frame_bytes) {
  // An error here leaves less than what is asked for, which is looked at below.
  (void)window.Ensure(frame_bytes + kRecordHeaderBytes);
  if (window.size() == frame_bytes) return window.Ensure(frame_bytes + 1).ok();
  return window.size() >= frame_bytes + kRecordHeaderBytes &&
         HeaderHolds(window.data() + frame_bytes);
}

// The first place from `begin` on where a header holds and has a possible length; else `end`. The
// 12 bytes from each place on can be read.
size_t FindHeader(const uint8_t* data, size_t begin, size_t end, uint64_t left_at_begin) {
  for (size_t at = begin; at < end; ++at) {
    const uint64_t length = LoadU64(data + at);
    if (length > kMaxRecordBytes) continue;
    if (HeaderHolds(data + at) && length + kFrameBytes <= left_at_begin - (at - begin)) return at;
  }
  return end;
}

// Moves the window to the next confirmed header, by looking at every byte behind its first.
absl::Status Search(ByteWindow& window) {
  uint64_t false_bytes = 0;
  size_t next = 1;
  StopLook look;
  while (true) {
    if (absl::Status status = window.Ensure(next + kFrameBytes); !status.ok()) return status;
    if (window.size() < next + kFrameBytes) return window.DropAll();
    const size_t end = window.size() - kFrameBytes + 1;
    const uint64_t left = window.plain_end() - window.offset() - next;
    const size_t at = FindHeader(window.data(), next, end, left);
    look.Did((at - next) * kPlaceWork);
    window.Drop(at);
    next = 0;
    if (at == end) continue;
    const uint64_t length = LoadU64(window.data());
    // Where the stream fails before the data's end, a shorter record may still be found.
    (void)window.Ensure(length + kFrameBytes);
    next = 1;
    if (window.size() < length + kFrameBytes) continue;
    if (DataHolds(window.data() + kRecordHeaderBytes, length)) return absl::OkStatus();
    false_bytes += length;
    if (false_bytes > kFalseCandidateBytesMax) return window.DropAll();
  }
}

}  // namespace

absl::Status Resynchronise(ByteWindow& window, DamageReason reason, Damage* damage) {
  *damage = {window.offset(), 0, reason};
  absl::Status status;
  uint64_t frame_bytes = 0;
  if (reason == DamageReason::kDataChecksum) {
    frame_bytes = LoadU64(window.data()) + kFrameBytes;
    status = window.Ensure(frame_bytes);
  }
  if (frame_bytes > 0 && window.size() >= frame_bytes && ChainHolds(window, frame_bytes)) {
    window.Drop(frame_bytes);
  } else {
    status = Search(window);
  }
  damage->length = window.offset() - damage->offset;
  return status;
}

}  // namespace penstock
