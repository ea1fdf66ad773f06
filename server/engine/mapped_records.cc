#include "server/engine/mapped_records.h"

#include <algorithm>
#include <cstring>

#include "server/io/record_chunk.h"
#include "server/io/tfrecord_frame.h"

namespace penstock {
namespace {

// Copied before the first of them is checked, so that what is stored has arrived in the cache when it is loaded again.
constexpr size_t kGroup = 8;
constexpr size_t kLine = 64;
// As far ahead as memory takes to answer; the processor's own prefetching ends with each page.
constexpr uint64_t kPrefetchDistance = 2048;

struct Copied {
  uint8_t* cell;
  uint64_t offset;  // of the header
  uint32_t length;
  uint32_t checksum;  // as the file has it
};

// One look at a number that may change: what was checked is what is used.
uint64_t LoadOnce(const uint8_t* bytes) {
  uint64_t value = LoadU64(bytes);
  asm volatile("" : "+r"(value));
  return value;
}

// The length of the record at `frame`, or more than any where it is not to be taken.
uint64_t CheckedLength(const uint8_t* frame, uint64_t left) {
  constexpr uint64_t kNone = ~uint64_t{0};
  if (left < kFrameBytes) return kNone;
  uint8_t header[kRecordHeaderBytes];
  const uint64_t length = LoadOnce(frame);
  std::memcpy(header, &length, sizeof(length));
  std::memcpy(header + sizeof(length), frame + sizeof(length), kRecordHeaderBytes - sizeof(length));
  const bool taken =
      length <= kLateRecordBytes && length + kFrameBytes <= left && HeaderHolds(header);
  return taken ? length : kNone;
}

// A whole cell where the file goes on so far: a copy of a round number of bytes is the faster one.
void CopyToCell(const uint8_t* data, uint64_t left, uint32_t length, uint8_t* cell) {
  const size_t cell_bytes = RecordStore::CellBytes(RecordStore::ClassOf(length));
  std::memcpy(cell, data, cell_bytes <= left ? cell_bytes : length);
}

// In whole lines, the last of which may overlap the one before: a call of memcpy costs as much as copying a small record.
void CopyBytes(const uint8_t* from, size_t bytes, uint8_t* to) {
  if (bytes < kLine) {
    std::memcpy(to, from, bytes);
    return;
  }
  for (size_t at = 0; at + kLine <= bytes; at += kLine) std::memcpy(to + at, from + at, kLine);
  std::memcpy(to + bytes - kLine, from + bytes - kLine, kLine);
}

}  // namespace

uint64_t ReadMapped(const MappedFile& map, uint32_t file, uint64_t offset, CellCache& cells,
                    RecordList* records) {
  const uint64_t size = map.size();
  const uint64_t begin = offset;
  const size_t records_before = records->size();
  Copied group[kGroup];
  bool sound = true;
  size_t count = kGroup;
  for (uint64_t at = begin; sound && count == kGroup; at = offset) {
    // Frames that lie within the next kChunkBytes.
    const uint64_t end = std::min(size, begin + kChunkBytes);
    for (count = 0; count < kGroup; ++count) {
      const uint8_t* const frame = map.bytes() + at;
      const uint64_t length = CheckedLength(frame, end - at);
      if (length > kLateRecordBytes) break;
      for (uint64_t line = 0; line < length + kFrameBytes; line += 64)
        __builtin_prefetch(frame + kPrefetchDistance + line);
      Copied& copied = group[count];
      copied = {cells.Take(static_cast<uint32_t>(length)), at, static_cast<uint32_t>(length), 0};
      const uint8_t* const data = frame + kRecordHeaderBytes;
      CopyToCell(data, size - at - kRecordHeaderBytes, copied.length, copied.cell);
      copied.checksum = LoadU32(data + length);
      at += length + kFrameBytes;
    }
    for (size_t i = 0; i < count; ++i) {
      const Copied& copied = group[i];
      sound = sound && MaskCrc32c(Crc32c(copied.cell, copied.length)) == copied.checksum;
      if (sound) {
        records->push_back({copied.cell, copied.offset, copied.length, file, 0});
        offset = copied.offset + copied.length + kFrameBytes;
      } else {
        cells.GiveBack(copied.cell, copied.length);
      }
    }
  }
  if (!map.torn()) return offset;
  for (size_t i = records_before; i < records->size(); ++i)
    cells.GiveBack(const_cast<uint8_t*>((*records)[i].data), (*records)[i].length);
  records->resize(records_before);
  return begin;
}

const uint8_t* CopyMapped(const RecordRef& record, Arena& arena) {
  const size_t bytes = size_t{record.length} + kRecordFooterBytes;
  uint8_t* const copy = arena.Allocate(bytes);
  CopyBytes(record.data, bytes, copy);
  return copy;
}

}  // namespace penstock
