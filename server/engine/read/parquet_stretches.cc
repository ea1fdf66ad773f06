#include "server/engine/read/parquet_stretches.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "io/parquet/parquet_values.h"

namespace penstock {
namespace {

constexpr uint64_t kMaxRows = uint64_t{1} << 62;

// About what the wanted columns of a row group take, decoded. Saturates.
uint64_t BytesOf(const ParquetFooter& footer, size_t group, const std::vector<uint32_t>& columns) {
  uint64_t bytes = 0;
  const uint64_t rows = footer.row_groups()[group].rows;
  const auto add = [&bytes](uint64_t more) { bytes += std::min(more, UINT64_MAX - bytes); };
  for (const uint32_t column : columns) {
    const ParquetColumn& one = footer.columns()[column];
    uint64_t slots = 0;
    if (__builtin_mul_overflow(rows, ParquetSlotBytes(one), &slots)) slots = UINT64_MAX;
    add(slots);
    if (one.is_text()) add(footer.chunk(group, column).plain_bytes);
  }
  return bytes;
}

}  // namespace

absl::Status ParquetStretches::AddFile(ParquetFooter footer, std::vector<uint32_t> columns) {
  const auto number = static_cast<uint32_t>(files_.size());
  const uint64_t first_row = num_rows();
  if (footer.num_rows() >= kMaxRows - first_row)
    return absl::DataLossError(
        absl::StrCat("the footer is not sound: ", footer.num_rows(), " rows"));
  for (size_t i = 0; i < footer.row_groups().size(); ++i) {
    const ParquetRowGroup& group = footer.row_groups()[i];
    if (group.rows == 0) {
      ++num_groups_;
      continue;
    }
    const uint64_t parts =
        std::clamp<uint64_t>(BytesOf(footer, i, columns) / stretch_bytes_ + 1, 1, group.rows);
    const uint64_t each = (group.rows + parts - 1) / parts;
    for (uint64_t row = 0; row < group.rows; row += each) {
      if (stretches_.size() >= kMaxParquetStretches) {
        return absl::InvalidArgumentError(
            absl::StrCat("more row groups than can be kept track of; expected at most ",
                         kMaxParquetStretches, ", where large ones count several times"));
      }
      Stretch stretch;
      stretch.first_row = num_rows();
      stretch.first_row_of_file = group.first_row + row;
      stretch.first_row_of_group = row;
      stretch.rows = std::min(each, group.rows - row);
      stretch.group = num_groups_;
      stretch.file = number;
      stretch.in_file = static_cast<uint32_t>(i);
      ends_.push_back(stretch.first_row + stretch.rows);
      stretches_.push_back(stretch);
    }
    ++num_groups_;
  }
  files_.push_back({std::move(footer), std::move(columns), first_row});
  return absl::OkStatus();
}

uint32_t ParquetStretches::StretchOf(uint64_t row) const {
  // Without branches, as any guess would be wrong half of the time.
  const uint64_t* end = ends_.data();
  for (size_t left = ends_.size(); left > 1;) {
    const size_t half = left / 2;
    end += half & -static_cast<size_t>(end[half - 1] <= row);
    left -= half;
  }
  return static_cast<uint32_t>(end - ends_.data());
}

}  // namespace penstock
