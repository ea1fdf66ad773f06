// Looks for Parquet files on which the reader crashes, reads beyond what it was given, or makes
// other values in stretches than at once.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/io/parquet/parquet_source.h"

namespace {

using namespace penstock;

// A string of a dictionary may be that of every row.
constexpr test::ParquetLimits kLimits = {.rows = 512, .page_bytes = 64 << 10};
constexpr uint64_t kStretch = 37;
constexpr size_t kMaxColumns = 64;

bool IsSame(const test::ParquetColumnRead& one, const test::ParquetColumnRead& other) {
  return one.numbers == other.numbers && one.texts == other.texts && one.nulls == other.nulls;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = test::InMemory(std::string(reinterpret_cast<const char*>(data), size));
  const auto footer = ParquetFooter::Read(*file);
  if (!footer.ok()) return 0;
  for (size_t i = 0; i < footer->columns().size() && i < kMaxColumns; ++i) {
    const auto whole = test::ReadColumn(*footer, i, {file.get()}, kLimits.rows, kLimits);
    const auto mapped = test::ReadColumn(*footer, i, {file.get(), data}, kLimits.rows, kLimits);
    if (whole.ok() != mapped.ok()) std::abort();
    if (whole.ok() && !IsSame(*whole, *mapped)) std::abort();
    const auto parts = test::ReadColumn(*footer, i, {file.get()}, kStretch, kLimits);
    // A part says nothing of what stands behind it, and the whole one of no more.
    if (whole.ok() && (!parts.ok() || !IsSame(*whole, *parts))) std::abort();
  }
  return 0;
}
