// All columns of a Parquet file in memory, decoded in stretches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "io/parquet/parquet_column.h"
#include "io/parquet/parquet_footer.h"
#include "tests/support/memory_file.h"

namespace penstock::test {

// The values of a column: numbers as they lie in memory, zeros where they are null, or strings.
struct ParquetColumnRead {
  std::string numbers;
  std::vector<std::string> texts;
  std::vector<uint64_t> nulls;
};

// Adds the values of a stretch.
inline void AddValues(const ParquetColumn& column, const ParquetValues& values, uint64_t first,
                      ParquetColumnRead* read) {
  const size_t slot = ParquetSlotBytes(column);
  for (uint64_t i = 0; i < values.rows; ++i) {
    const bool is_null =
        values.validity.bytes > 0 && (values.validity.block.get()[i / 8] >> (i % 8) & 1) == 0;
    if (is_null) read->nulls.push_back(first + i);
    if (column.is_text()) {
      const ParquetText& text = values.texts()[i];
      read->texts.emplace_back(reinterpret_cast<const char*>(text.data), text.size);
    } else {
      read->numbers.append(reinterpret_cast<const char*>(values.slots.block.get()) + i * slot,
                           slot);
    }
  }
}

// What a test reads at most: row groups of more rows, or with larger pages, are left out.
struct ParquetLimits {
  uint64_t rows = UINT64_MAX;
  uint64_t page_bytes = UINT64_MAX;
};

inline bool IsWithin(const ParquetLimits& limits, const ParquetRowGroup& group,
                     const ParquetPages& pages) {
  if (group.rows > limits.rows) return false;
  if (pages.dictionary && pages.dictionary->plain_bytes > limits.page_bytes) return false;
  return std::all_of(pages.data.begin(), pages.data.end(), [&](const ParquetPage& page) {
    return page.plain_bytes <= limits.page_bytes;
  });
}

// Decodes a column in stretches of at most `stretch` rows.
inline absl::StatusOr<ParquetColumnRead> ReadColumn(const ParquetFooter& footer, size_t column,
                                                    const ParquetInput& input, uint64_t stretch,
                                                    const ParquetLimits& limits = {},
                                                    const std::string& fill = "") {
  if (absl::Status status = footer.CheckColumn(column); !status.ok()) return status;
  const ParquetColumn& wanted = footer.columns()[column];
  ParquetColumnRead read;
  Arena scratch;
  for (size_t i = 0; i < footer.row_groups().size(); ++i) {
    const ParquetRowGroup& group = footer.row_groups()[i];
    const ParquetChunk& chunk = footer.chunk(i, column);
    absl::StatusOr<ParquetPages> pages = ReadParquetPages(*input.file, chunk);
    if (!pages.ok()) return pages.status();
    if (!IsWithin(limits, group, *pages)) continue;
    std::shared_ptr<const ParquetDictionary> dictionary;
    if (pages->dictionary) {
      auto found = ReadParquetDictionary(input, wanted, chunk.codec, *pages, scratch);
      if (!found.ok()) return found.status();
      dictionary = *found;
    }
    for (uint64_t row = 0; row < group.rows; row += stretch) {
      const uint64_t count = std::min(stretch, group.rows - row);
      auto values = ReadParquetValues(input, wanted, chunk.codec, *pages, dictionary, row, count,
                                      fill, scratch);
      if (!values.ok()) return values.status();
      AddValues(wanted, *values, group.first_row + row, &read);
    }
  }
  return read;
}

}  // namespace penstock::test
