#include "server/engine/read/mapped_records.h"

#include <cstring>

#include "io/file/mapped_file.h"
#include "io/record/tfrecord_frame.h"

namespace penstock {
namespace {

constexpr size_t kLine = 64;

// So many frames are copied before the first of them is checked.
constexpr int kStrip = 8;
// How far ahead memory is asked for: with 1, 2 and 4 KiB records of 240 bytes take equally long,
// without it a half more.
constexpr size_t kAhead = 2048;

// In whole lines, the last of which may overlap the one before: a call of memcpy costs as much as
// copying a small record.
void CopyBytes(const uint8_t* from, size_t bytes, uint8_t* to) {
  if (bytes < kLine) {
    std::memcpy(to, from, bytes);
    return;
  }
  for (size_t at = 0; at + kLine <= bytes; at += kLine) std::memcpy(to + at, from + at, kLine);
  std::memcpy(to + bytes - kLine, from + bytes - kLine, kLine);
}

// The length that the frame at `frame` has for its data, of which `left` bytes are there.
// UINT64_MAX where its header does not hold.
uint64_t LengthAt(const uint8_t* frame, size_t left) {
  if (left < kRecordHeaderBytes) return UINT64_MAX;
  uint8_t header[kRecordHeaderBytes];
  std::memcpy(header, frame, sizeof(header));
  return HeaderHolds(header) ? LoadU64(header) : UINT64_MAX;
}

// How many of the first `count` records hold, by the checksums that were stored for them.
int NumHolding(const RecordRef* records, const uint32_t* stored, int count) {
  int i = 0;
  while (i < count && MaskCrc32c(Crc32c(records[i].data, records[i].length)) == stored[i]) ++i;
  return i;
}

}  // namespace

uint8_t* CopyMapped(const RecordRef& record, uint32_t footer_bytes, Arena& arena) {
  const size_t bytes = size_t{record.length} + footer_bytes;
  uint8_t* const copy = arena.Allocate(bytes);
  CopyBytes(record.data, bytes, copy);
  return copy;
}

void CopyAhead(const uint8_t* from, size_t bytes, uint8_t* to) {
  size_t at = 0;
  for (; at + kLine <= bytes; at += kLine) {
    __builtin_prefetch(from + at + kAhead);
    std::memcpy(to + at, from + at, kLine);
  }
  if (at == bytes) return;
  __builtin_prefetch(from + at + kAhead);
  if (bytes < kLine) {
    std::memcpy(to, from, bytes);
  } else {
    std::memcpy(to + bytes - kLine, from + bytes - kLine, kLine);
  }
}

MappedFrames CopyMappedFrames(absl::Span<const uint8_t> bytes, uint64_t offset, uint32_t file,
                              CellCache& cells, RecordList* records) {
  const uint8_t* const begin = bytes.data();
  const uint8_t* const end = begin + bytes.size();
  const uint8_t* frame = begin;
  MappedFrames taken;
  int copied, held;
  do {
    const size_t first = records->size();
    uint32_t stored[kStrip];
    for (copied = 0; copied < kStrip; ++copied) {
      const size_t left = end - frame;
      const uint64_t length = LengthAt(frame, left);
      taken.next_is_late = length > kLateRecordBytes && length <= kMaxRecordBytes;
      if (length > kLateRecordBytes || length + kFrameBytes > left) break;
      PrefetchRecord(frame + kAhead, length + kFrameBytes);
      uint8_t* const cell = cells.Take(length);
      const uint8_t* const data = frame + kRecordHeaderBytes;
      CopyBytes(data, length, cell);
      stored[copied] = LoadU32(data + length);
      records->push_back({cell, offset + (frame - begin), static_cast<uint32_t>(length), file, 0});
      frame = data + length + kRecordFooterBytes;
    }
    held = NumHolding(records->data() + first, stored, copied);
    if (held < copied) {
      frame = begin + ((*records)[first + held].offset - offset);
      for (size_t i = first + held; i < records->size(); ++i)
        cells.GiveBack(const_cast<uint8_t*>((*records)[i].data), (*records)[i].length);
      records->resize(first + held);
      taken.next_is_late = false;
    }
  } while (held == kStrip);
  taken.bytes = frame - begin;
  return taken;
}

MappedFrames LocateMappedFrames(absl::Span<const uint8_t> bytes, uint64_t offset, uint32_t file,
                                RecordList* records) {
  const uint8_t* const begin = bytes.data();
  const uint8_t* const end = begin + bytes.size();
  const uint8_t* frame = begin;
  MappedFrames taken;
  // As many as of the first one's length.
  if (const uint64_t length = LengthAt(begin, bytes.size()); length <= kLateRecordBytes)
    records->reserve(bytes.size() / (length + kFrameBytes) + 1);
  while (true) {
    const size_t left = end - frame;
    const uint64_t length = LengthAt(frame, left);
    taken.next_is_late = length > kLateRecordBytes && length <= kMaxRecordBytes;
    if (length > kLateRecordBytes || length + kFrameBytes > left) break;
    PrefetchRecord(frame + kAhead, length + kFrameBytes);
    records->push_back({nullptr, offset + (frame - begin), static_cast<uint32_t>(length), file, 0});
    frame += length + kFrameBytes;
  }
  taken.bytes = frame - begin;
  return taken;
}

}  // namespace penstock
