// The pages of a column in one row group: their headers, found one behind another.
//
//   chunk   dictionary page, if there is one   data pages …        each of them: header, body
//
// Source: "Data Pages" of the Apache Parquet format, and PageHeader of parquet.thrift.
//
// All pages lie in their chunk, and have as many values together as the footer says. What is in
// their bodies is not looked at.
//
// Threads:  constant after construction.
// Limits:   headers of kMaxParquetHeaderBytes, bodies of kMaxParquetPageBytes, packed and plain.
// Cost:     a read of some hundred bytes a page; 72 bytes a page.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "io/parquet/parquet_footer.h"

namespace penstock {

inline constexpr uint64_t kMaxParquetHeaderBytes = uint64_t{16} << 20;
inline constexpr uint64_t kMaxParquetPageBytes = uint64_t{1} << 30;

// The numbers are those of Encoding in the file.
enum class ParquetEncoding : uint8_t {
  kPlain = 0,
  kPlainDictionary = 2,
  kRle = 3,
  kBitPacked = 4,
  kDeltaBinaryPacked = 5,
  kDeltaLengthByteArray = 6,
  kDeltaByteArray = 7,
  kRleDictionary = 8,
  kByteStreamSplit = 9,
};

// "PLAIN"; "encoding 1" for what has no name.
std::string ParquetEncodingName(ParquetEncoding encoding);

struct ParquetPage {
  uint64_t offset = 0;     // of its body in the file
  uint64_t first_row = 0;  // in the row group
  uint32_t bytes = 0;      // of its body
  uint32_t plain_bytes = 0;
  uint32_t values = 0;  // with those that are null; entries of a dictionary
  ParquetEncoding encoding = ParquetEncoding::kPlain;
  ParquetEncoding level_encoding = ParquetEncoding::kRle;
  std::optional<uint32_t> sum;  // CRC-32 of the body

  // Of version 2: the levels stand in front of the values, never compressed.
  bool is_version_2 = false;
  bool is_compressed = true;
  uint32_t nulls = 0;
  uint32_t repetition_bytes = 0;
  uint32_t definition_bytes = 0;
};

struct ParquetPages {
  std::optional<ParquetPage> dictionary;
  std::vector<ParquetPage> data;

  uint64_t bytes() const { return sizeof(*this) + data.capacity() * sizeof(ParquetPage); }
};

// REQUIRES: the chunk is one of the footer's, not elsewhere nor encrypted. DataLoss with its
// address for what is none.
absl::StatusOr<ParquetPages> ReadParquetPages(RandomAccessFile& file, const ParquetChunk& chunk);

}  // namespace penstock
