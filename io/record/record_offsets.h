// Where the records of a file begin, in little memory: offsets in rising order, found by their
// ordinals.
//
//   a line, 64 bytes                                        of records that lie close to each other: 2.3 bytes a record
//   ┌──────────┬──────────────────────────────────────┐
//   │ base u64 │ 28 distances from it, u16 each       │    offset = base + (distance << shift)
//   └──────────┴──────────────────────────────────────┘
//   ┌──────────┬──────────────────────────────────────┐     of records that lie further apart: 10.3 bytes a record
//   │ bit 63,  │ nothing                              │    offset = wide[place + number in the line]
//   │ place    │                                      │
//   └──────────┴──────────────────────────────────────┘
//
// A look-up touches one cache line, or two. The offsets of records of one length are computed and
// take no memory.
//
// Threads:  constant after construction; a builder belongs to one thread.
// Owns:     the memory of its lines.
// Limits:   offsets below 2^63; each a multiple of 1 << shift.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/memory_block.h"

namespace penstock {

class RecordOffsets {
 public:
  static constexpr uint64_t kPerLine = 28;
  static constexpr uint64_t kWide = uint64_t{1} << 63;
  struct Line {
    uint64_t base;
    uint16_t distances[kPerLine];
  };
  static_assert(sizeof(Line) == 64);

  RecordOffsets() = default;
  // The lines and the wide offsets lie in `memory`. REQUIRES: as many lines as `size` records need.
  RecordOffsets(MemoryBlock memory, const Line* lines, absl::Span<const uint64_t> wide,
                uint64_t size, uint8_t shift)
      : memory_(std::move(memory)), lines_(lines), wide_(wide), size_(size), shift_(shift) {}
  // `count` records of `distance` bytes each, the first at `first`. REQUIRES: distance > 0.
  static RecordOffsets Even(uint64_t first, uint64_t distance, uint64_t count);

  static uint64_t NumLines(uint64_t size) { return (size + kPerLine - 1) / kPerLine; }
  // Memory for lines: looked at in any order, so on huge pages where there are enough for one.
  static MemoryBlock Allocate(size_t bytes);

  uint64_t size() const { return size_; }
  // REQUIRES: ordinal < size().
  uint64_t operator[](uint64_t ordinal) const {
    if (distance_ != 0) return first_ + ordinal * distance_;
    const Line& line = lines_[ordinal / kPerLine];
    const uint64_t in_line = ordinal % kPerLine;
    if ((line.base & kWide) != 0) return wide_[(line.base & ~kWide) + in_line];
    return line.base + (uint64_t{line.distances[in_line]} << shift_);
  }
  // The offset of a record and that of the next one, which the last one has not: it gets `behind`.
  struct Pair {
    uint64_t offset;
    uint64_t next;
  };
  Pair PairAt(uint64_t ordinal, uint64_t behind) const {
    if (distance_ == 0) {
      const Line& line = lines_[ordinal / kPerLine];
      const uint64_t in_line = ordinal % kPerLine;
      // Mostly one line has both.
      if (in_line + 1 < kPerLine && ordinal + 1 < size_ && (line.base & kWide) == 0) {
        return {line.base + (uint64_t{line.distances[in_line]} << shift_),
                line.base + (uint64_t{line.distances[in_line + 1]} << shift_)};
      }
    }
    return {(*this)[ordinal], ordinal + 1 < size_ ? (*this)[ordinal + 1] : behind};
  }
  // What a look-up will touch first, to be fetched ahead.
  const void* Entry(uint64_t ordinal) const { return lines_ + ordinal / kPerLine; }
  // The first record at or behind `offset`; size() where there is none.
  uint64_t FirstFrom(uint64_t offset) const;

  // For who writes them down. Computed ones have no lines.
  bool is_even() const { return distance_ != 0; }
  absl::Span<const Line> lines() const { return {lines_, is_even() ? 0 : NumLines(size_)}; }
  absl::Span<const uint64_t> wide() const { return wide_; }
  uint8_t shift() const { return shift_; }

 private:
  MemoryBlock memory_;
  const Line* lines_ = nullptr;
  absl::Span<const uint64_t> wide_;
  uint64_t size_ = 0;
  uint64_t first_ = 0;
  uint64_t distance_ = 0;  // 0: they are in lines
  uint8_t shift_ = 0;
};

// Makes them of offsets that come one by one.
class RecordOffsetsBuilder {
 public:
  // Of a file of `file_bytes`, by which memory is asked for.
  RecordOffsetsBuilder(uint8_t shift, uint64_t file_bytes)
      : shift_(shift), file_bytes_(file_bytes) {}

  // REQUIRES: behind the one before, and a multiple of 1 << shift.
  void Add(uint64_t offset) {
    waiting_[num_waiting_++] = offset;
    if (num_waiting_ == RecordOffsets::kPerLine) EndLine();
  }
  uint64_t size() const { return lines_.size() * RecordOffsets::kPerLine + num_waiting_; }
  // Once.
  RecordOffsets Finish();

 private:
  void EndLine();

  const uint8_t shift_;
  const uint64_t file_bytes_;
  std::vector<RecordOffsets::Line> lines_;
  std::vector<uint64_t> wide_;
  uint64_t waiting_[RecordOffsets::kPerLine];
  uint64_t num_waiting_ = 0;
};

}  // namespace penstock
