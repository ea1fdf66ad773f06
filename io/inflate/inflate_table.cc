#include "io/inflate/inflate_table.h"

#include <algorithm>

#include "io/inflate/deflate_format.h"

namespace penstock {
namespace {

// A code of so many bits and its extra ones.
constexpr uint64_t CodeBits(uint32_t bits, uint32_t extra = 0) {
  return (bits + extra) | uint64_t{bits} << InflateTable::kExtraShift |
         uint64_t{extra} << (InflateTable::kExtraShift + 8);
}

}  // namespace

bool InflateTable::Build(absl::Span<const uint8_t> literal_bits,
                         absl::Span<const uint8_t> distance_bits) {
  if (!literals_.Build(literal_bits) || !distances_.Build(distance_bits)) return false;
  std::fill(std::begin(entries_), std::end(entries_), kSpecial);
  AddLiterals();
  AddMatches();
  return true;
}

void InflateTable::AddLiterals() {
  EntriesBehind second;
  second.Build(literals_, 0, [](uint32_t symbol, uint32_t bits, uint64_t* entry) {
    if (symbol >= deflate::kEndOfBlock) return;
    *entry =
        CodeBits(bits) + (uint64_t{1} << kLengthShift) + (uint64_t{symbol} << (kLiteralsShift + 8));
  });
  literals_.ForEachDirect([&](uint32_t symbol, uint32_t bits, uint32_t code) {
    if (symbol >= deflate::kEndOfBlock) return;
    const uint64_t first = kLiteral | CodeBits(bits) |
                           uint64_t{kLiteralDistance} << kDistanceShift |
                           uint64_t{1} << kLengthShift | uint64_t{symbol} << kLiteralsShift;
    const uint64_t* behind = second.ByNextBits(kIndexBits - bits);
    for (size_t i = code; i < kNumEntries; i += size_t{1} << bits) entries_[i] = first + *behind++;
  });
}

void InflateTable::AddMatches() {
  constexpr uint64_t kNoDistance = kSpecial | kHasLength;
  behind_length_.Build(
      distances_, kNoDistance, [](uint32_t symbol, uint32_t bits, uint64_t* entry) {
        if (symbol >= deflate::kNumDistances) return;
        const deflate::Range& range = deflate::kDistances[symbol];
        *entry = CodeBits(bits, range.extra_bits) + (uint64_t{range.base} << kDistanceShift);
      });
  literals_.ForEachDirect([&](uint32_t symbol, uint32_t code_bits, uint32_t code) {
    const uint32_t ordinal = symbol - deflate::kFirstLength;  // of literals: huge
    if (ordinal >= deflate::kNumLengths) return;
    const deflate::Range& range = deflate::kLengths[ordinal];
    const uint32_t bits = code_bits + range.extra_bits;
    if (bits > kIndexBits) return;
    const size_t step = size_t{1} << bits;
    for (uint32_t extra = 0; extra < uint32_t{1} << range.extra_bits; ++extra) {
      const size_t first = code | extra << code_bits;
      const uint32_t length = range.base + extra;
      const uint64_t entry = CodeBits(bits) + (uint64_t{length} << kLongLengthShift);
      if (length > kCopyBytes) {
        for (size_t i = first; i < kNumEntries; i += step) entries_[i] = entry | kNoDistance;
        continue;
      }
      const uint64_t* behind = behind_length_.ByNextBits(kIndexBits - bits);
      for (size_t i = first; i < kNumEntries; i += step)
        entries_[i] = entry + (uint64_t{length} << kLengthShift) + *behind++;
    }
  });
}

}  // namespace penstock
