#include "io/record/record_offsets.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

// From so many lines on, their mean distance tells how many there will be. A vector that grows by
// itself needs three times its bytes at its worst.
constexpr size_t kKnownLines = 256;

}  // namespace

RecordOffsets RecordOffsets::Even(uint64_t first, uint64_t distance, uint64_t count) {
  RecordOffsets offsets;
  offsets.first_ = first;
  offsets.distance_ = distance;
  offsets.size_ = count;
  return offsets;
}

MemoryBlock RecordOffsets::Allocate(size_t bytes) {
  // An eighth more memory at most is what huge pages are worth here.
  const bool huge = bytes < kHugePageBytes && bytes >= kHugePageBytes / 8 * 7;
  return AllocateMemoryBlock(huge ? kHugePageBytes : bytes);
}

uint64_t RecordOffsets::FirstFrom(uint64_t offset) const {
  uint64_t first = 0;
  for (uint64_t left = size_; left > 0;) {
    const uint64_t half = left / 2;
    if ((*this)[first + half] < offset) {
      first += half + 1;
      left -= half + 1;
    } else {
      left = half;
    }
  }
  return first;
}

void RecordOffsetsBuilder::EndLine() {
  const uint64_t base = waiting_[0];
  RecordOffsets::Line line{base, {}};
  if ((waiting_[num_waiting_ - 1] - base) >> shift_ <= UINT16_MAX) {
    for (uint64_t i = 0; i < num_waiting_; ++i)
      line.distances[i] = static_cast<uint16_t>((waiting_[i] - base) >> shift_);
  } else {
    line.base = RecordOffsets::kWide | wide_.size();
    wide_.insert(wide_.end(), waiting_, waiting_ + num_waiting_);
  }
  lines_.push_back(line);
  num_waiting_ = 0;
  if (lines_.size() == kKnownLines && base > 0) {
    const double expected = static_cast<double>(file_bytes_) / base * kKnownLines;
    lines_.reserve(static_cast<size_t>(expected * 1.05) + kKnownLines);
  }
}

RecordOffsets RecordOffsetsBuilder::Finish() {
  const uint64_t count = size();
  if (num_waiting_ > 0) EndLine();
  const size_t line_bytes = lines_.size() * sizeof(RecordOffsets::Line);
  const size_t wide_bytes = wide_.size() * sizeof(uint64_t);
  MemoryBlock memory = RecordOffsets::Allocate(line_bytes + wide_bytes);
  if (line_bytes > 0) std::memcpy(memory.get(), lines_.data(), line_bytes);
  if (wide_bytes > 0) std::memcpy(memory.get() + line_bytes, wide_.data(), wide_bytes);
  const auto* lines = reinterpret_cast<const RecordOffsets::Line*>(memory.get());
  const auto* wide = reinterpret_cast<const uint64_t*>(memory.get() + line_bytes);
  return RecordOffsets(std::move(memory), lines, {wide, wide_.size()}, count, shift_);
}

}  // namespace penstock
