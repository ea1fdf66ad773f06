// The footer of a Parquet file: its schema, its row groups, and where the pages of each column lie.
//
//   "PAR1"   pages …   footer   u32 bytes of the footer   "PAR1"
//   ─────────────────────────────────────────────────────────────
//   row group: rows, and a chunk of each column: its pages, one after another, of one codec
//
// Source: "File Format" of the Apache Parquet format, and FileMetaData of parquet.thrift.
//
// Everything that the footer says of the file is compared with its size: chunks lie in front of it.
// What is in them is not looked at.
//
// Threads:  constant after construction.
// Limits:   a footer of kMaxParquetFooterBytes, kMaxParquetChunks chunks, fewer than 2^62 rows.
// Cost:     two reads; 40 bytes a chunk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "io/parquet/parquet_schema.h"

namespace penstock {

inline constexpr uint64_t kMaxParquetFooterBytes = uint64_t{256} << 20;
inline constexpr uint64_t kMaxParquetChunks = uint64_t{1} << 22;

// The numbers are those of CompressionCodec in the file.
enum class ParquetCodec : uint8_t {
  kUncompressed = 0,
  kSnappy = 1,
  kGzip = 2,
  kLzo = 3,
  kBrotli = 4,
  kLz4Hadoop = 5,
  kZstd = 6,
  kLz4Raw = 7,
};

// "ZSTD"; "codec 9" for what has no name.
std::string ParquetCodecName(ParquetCodec codec);

// The pages of one column in one row group.
struct ParquetChunk {
  uint64_t offset = 0;  // of its first page in the file
  uint64_t bytes = 0;   // of all its pages
  uint64_t values = 0;  // with those that are null
  uint64_t plain_bytes = 0;
  ParquetCodec codec = ParquetCodec::kUncompressed;
  bool is_elsewhere = false;  // in another file
  bool is_encrypted = false;
};

struct ParquetRowGroup {
  uint64_t first_row = 0;
  uint64_t rows = 0;
};

class ParquetFooter {
 public:
  // Reads that of the file. DataLoss with its address for what is none; Unimplemented for one that
  // is encrypted.
  static absl::StatusOr<ParquetFooter> Read(RandomAccessFile& file);

  const std::vector<ParquetColumn>& columns() const { return columns_; }
  const std::vector<ParquetRowGroup>& row_groups() const { return row_groups_; }
  uint64_t num_rows() const { return num_rows_; }
  // CRC-32 of the footer's bytes.
  uint32_t sum() const { return sum_; }
  // REQUIRES: both are there.
  const ParquetChunk& chunk(size_t row_group, size_t column) const {
    return chunks_[row_group * columns_.size() + column];
  }

  // Unimplemented, with the reason, where the values of a column are not read here, in whichever
  // row group. The encodings are known when its pages are read.
  absl::Status CheckColumn(size_t column) const;

 private:
  class Builder;

  std::vector<ParquetColumn> columns_;
  std::vector<ParquetRowGroup> row_groups_;
  std::vector<ParquetChunk> chunks_;  // of each row group, in the columns' order
  uint64_t num_rows_ = 0;
  uint32_t sum_ = 0;
};

}  // namespace penstock
