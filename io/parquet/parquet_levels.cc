#include "io/parquet/parquet_levels.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "io/parquet/rle_hybrid.h"

namespace penstock {
namespace {

constexpr size_t kAtOnce = 1024;

// Calls each(level, how many) for `count` levels; false where there are fewer.
template <typename Each>
bool ForEachRun(RleHybrid& levels, uint64_t count, StopLook& look, Each each) {
  uint32_t packed[kAtOnce];
  while (count > 0) {
    uint64_t run = 0, at_hand = 0;
    uint32_t level = 0;
    if (!levels.TakeRun(count, &run, &level, &at_hand)) return false;
    if (run > 0) {
      each(level != 0, run);
      look.Did(1);
      count -= run;
      continue;
    }
    const auto some = static_cast<size_t>(std::min<uint64_t>(at_hand, kAtOnce));
    if (!levels.Read(packed, some)) return false;
    for (size_t i = 0; i < some;) {
      size_t end = i + 1;
      while (end < some && packed[end] == packed[i]) ++end;
      each(packed[i] != 0, end - i);
      i = end;
    }
    look.Did(some);
    count -= some;
  }
  return true;
}

}  // namespace

void ParquetValidity::Add(bool is_there, uint64_t count) {
  uint8_t* bits = bits_.block.get();
  if (!is_there && bits == nullptr) {
    // All until here were there.
    bits_ = AllocateArrowMemory(rows_ / 8 + 1);
    bits = bits_.block.get();
    std::memset(bits, 0xFF, bits_.bytes);
  }
  if (!is_there) {
    nulls_ += count;
    uint64_t row = done_;
    const uint64_t end = done_ + count;
    for (; row < end && row % 8 != 0; ++row)
      bits[row / 8] &= static_cast<uint8_t>(~(1u << row % 8));
    if (end - row >= 8) {
      std::memset(bits + row / 8, 0, (end - row) / 8);
      row += (end - row) / 8 * 8;
    }
    for (; row < end; ++row) bits[row / 8] &= static_cast<uint8_t>(~(1u << row % 8));
  }
  done_ += count;
}

void ParquetValidity::TakeAll(uint64_t count) { Add(true, count); }

absl::Status ParquetValidity::Take(absl::Span<const uint8_t> levels, uint64_t first, uint64_t count,
                                   uint64_t* skipped, uint64_t* values) {
  RleHybrid runs(levels, /*bits=*/1);
  StopLook look;
  *skipped = 0;
  *values = 0;
  const bool is_sound =
      ForEachRun(runs, first, look,
                 [&](bool is_there, uint64_t some) { *skipped += is_there ? some : 0; }) &&
      ForEachRun(runs, count, look, [&](bool is_there, uint64_t some) {
        *values += is_there ? some : 0;
        Add(is_there, some);
      });
  if (is_sound) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the definition levels of a page are no runs of ", first + count, " or more"));
}

}  // namespace penstock
