#include "server/engine/mapped_records.h"

#include <cstring>

#include "server/io/tfrecord_frame.h"

namespace penstock {
namespace {

constexpr size_t kLine = 64;

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

const uint8_t* CopyMapped(const RecordRef& record, Arena& arena) {
  const size_t bytes = size_t{record.length} + kRecordFooterBytes;
  uint8_t* const copy = arena.Allocate(bytes);
  CopyBytes(record.data, bytes, copy);
  return copy;
}

}  // namespace penstock
