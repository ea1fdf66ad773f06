#include "io/parquet/parquet_footer.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "io/file/damage.h"
#include "io/parquet/thrift_compact.h"

namespace penstock {
namespace {

constexpr char kMagic[] = "PAR1";
constexpr char kEncryptedMagic[] = "PARE";
constexpr uint64_t kMagicBytes = 4;
constexpr uint64_t kTailBytes = 4 + kMagicBytes;  // behind the footer
constexpr int64_t kMaxRows = int64_t{1} << 62;

// The numbers of the fields in their structs.
enum FileField { kSchema = 2, kNumRows = 3, kRowGroups = 4, kEncryption = 8 };
enum GroupField { kColumns = 1, kRowsOfGroup = 3 };
enum ChunkField { kFilePath = 1, kMetadata = 3, kCrypto = 8, kEncryptedMetadata = 9 };
enum MetadataField {
  kType = 1,
  kCodec = 4,
  kNumValues = 5,
  kPlainBytes = 6,
  kBytes = 7,
  kDataOffset = 9,
  kDictionaryOffset = 11,
};

absl::Status Unsound(const std::string& what) {
  return absl::DataLossError(absl::StrCat("the footer is not sound: ", what));
}

// What the metadata says of a chunk.
struct Metadata {
  bool is_there = false;
  int64_t type = -1;
  int64_t codec = -1;
  int64_t values = -1;
  int64_t plain_bytes = -1;
  int64_t bytes = -1;
  int64_t data_offset = -1;
  int64_t dictionary_offset = 0;
};

void ReadMetadata(ThriftReader& reader, Metadata* metadata) {
  metadata->is_there = true;
  reader.Inner([&](int field) {
    switch (field) {
      case kType:
        metadata->type = reader.Number();
        break;
      case kCodec:
        metadata->codec = reader.Number();
        break;
      case kNumValues:
        metadata->values = reader.Number();
        break;
      case kPlainBytes:
        metadata->plain_bytes = reader.Number();
        break;
      case kBytes:
        metadata->bytes = reader.Number();
        break;
      case kDataOffset:
        metadata->data_offset = reader.Number();
        break;
      case kDictionaryOffset:
        metadata->dictionary_offset = reader.Number();
        break;
      default:
        break;
    }
  });
}

}  // namespace

std::string ParquetCodecName(ParquetCodec codec) {
  constexpr const char* kNames[] = {"UNCOMPRESSED", "SNAPPY",       "GZIP", "LZO",
                                    "BROTLI",       "LZ4 (Hadoop)", "ZSTD", "LZ4_RAW"};
  const auto number = static_cast<size_t>(codec);
  return number < std::size(kNames) ? kNames[number] : absl::StrCat("codec ", number);
}

// Takes what the footer says, with checks.
class ParquetFooter::Builder {
 public:
  // `end`: where the footer begins.
  Builder(uint64_t end, ParquetFooter* footer) : end_(end), footer_(*footer) {}

  absl::Status Read(absl::Span<const uint8_t> bytes) {
    ThriftReader reader(bytes);
    int64_t rows = -1;
    bool has_schema = false;
    reader.Struct([&](int field) {
      if (!status_.ok()) return;
      switch (field) {
        case kSchema:
          status_ = has_schema ? Unsound("it has two schemas")
                               : ReadParquetSchema(reader, &footer_.columns_);
          has_schema = true;
          break;
        case kNumRows:
          rows = reader.Number();
          break;
        case kRowGroups:
          // The schema stands in front, as fields are written in their order.
          if (!has_schema || !footer_.row_groups_.empty())
            status_ = Unsound("its row groups are not behind its schema");
          if (status_.ok()) ReadRowGroups(reader);
          break;
        case kEncryption:
          status_ = absl::UnimplementedError("encrypted columns are not read here");
          break;
        default:
          break;
      }
    });
    if (!status_.ok()) return status_;
    if (reader.malformed() || !has_schema) return Unsound("it is no FileMetaData");
    if (rows < 0 || static_cast<uint64_t>(rows) != footer_.num_rows_) {
      return Unsound(
          absl::StrCat("it has ", rows, " rows, its row groups ", footer_.num_rows_, " together"));
    }
    return absl::OkStatus();
  }

 private:
  void ReadRowGroups(ThriftReader& reader) {
    reader.List([&] {
      if (status_.ok()) ReadRowGroup(reader);
    });
  }

  void ReadRowGroup(ThriftReader& reader) {
    int64_t rows = -1;
    const size_t first = footer_.chunks_.size();
    reader.Inner([&](int field) {
      if (field == kRowsOfGroup) rows = reader.Number();
      if (field == kColumns) {
        reader.List([&] {
          if (status_.ok()) ReadChunk(reader);
        });
      }
    });
    if (!status_.ok() || reader.malformed()) return;
    const size_t number = footer_.row_groups_.size();
    const size_t chunks = footer_.chunks_.size() - first;
    if (chunks != footer_.columns_.size()) {
      status_ = Unsound(absl::StrCat("row group ", number, " has ", chunks, " columns; expected ",
                                     footer_.columns_.size()));
    } else if (rows < 0 || rows >= kMaxRows - static_cast<int64_t>(footer_.num_rows_)) {
      status_ = Unsound(absl::StrCat("row group ", number, " has ", rows, " rows"));
    } else {
      CheckValues(number, first, static_cast<uint64_t>(rows));
    }
    // A schema without columns would let a footer have any number of groups.
    if (status_.ok() && number >= kMaxParquetChunks)
      status_ = Unsound(absl::StrCat("it has more than ", kMaxParquetChunks, " row groups"));
    if (!status_.ok()) return;
    footer_.row_groups_.push_back({footer_.num_rows_, static_cast<uint64_t>(rows)});
    footer_.num_rows_ += static_cast<uint64_t>(rows);
  }

  // Where columns are not nested each has a value for each row.
  void CheckValues(size_t number, size_t first, uint64_t rows) {
    for (size_t i = 0; i < footer_.columns_.size(); ++i) {
      const ParquetChunk& chunk = footer_.chunks_[first + i];
      if (footer_.columns_[i].dtype == DType::kInvalid || chunk.is_encrypted) continue;
      if (chunk.values == rows) continue;
      status_ = Unsound(absl::StrCat("column ", i, " of row group ", number, " has ", chunk.values,
                                     " values; expected ", rows));
      return;
    }
  }

  void ReadChunk(ThriftReader& reader) {
    const size_t columns = footer_.columns_.size();
    if (footer_.chunks_.size() >= kMaxParquetChunks) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat("the file has more than ", kMaxParquetChunks,
                       " columns in its row groups together; write larger row groups"));
      return;
    }
    const size_t in_group =
        footer_.chunks_.size() - footer_.row_groups_.size() * std::max<size_t>(1, columns);
    if (in_group >= columns) {
      status_ = Unsound(absl::StrCat("row group ", footer_.row_groups_.size(), " has more than ",
                                     columns, " columns"));
      return;
    }
    Metadata metadata;
    ParquetChunk chunk;
    reader.Inner([&](int field) {
      if (field == kFilePath) chunk.is_elsewhere = !reader.Binary().empty();
      if (field == kMetadata) ReadMetadata(reader, &metadata);
      if (field == kCrypto || field == kEncryptedMetadata) chunk.is_encrypted = true;
    });
    if (reader.malformed()) return;
    status_ = TakeMetadata(metadata, in_group, &chunk);
    footer_.chunks_.push_back(chunk);
  }

  absl::Status TakeMetadata(const Metadata& metadata, size_t column, ParquetChunk* chunk) const {
    if (chunk->is_encrypted) return absl::OkStatus();
    const auto wrong = [&](const std::string& what) {
      return Unsound(
          absl::StrCat("column ", column, " of row group ", footer_.row_groups_.size(), " ", what));
    };
    if (!metadata.is_there) return wrong("has no metadata");
    if (metadata.type != static_cast<int64_t>(footer_.columns_[column].type))
      return wrong(absl::StrCat("is of type ", metadata.type, ", unlike the schema"));
    if (metadata.codec < 0 || metadata.codec > UINT8_MAX)
      return wrong(absl::StrCat("has codec ", metadata.codec));
    if (metadata.values < 0 || metadata.plain_bytes < 0)
      return wrong(
          absl::StrCat("has ", metadata.values, " values in ", metadata.plain_bytes, " bytes"));
    chunk->codec = static_cast<ParquetCodec>(metadata.codec);
    // Of no rows there are no pages, whatever is said of them.
    if (metadata.values == 0) return absl::OkStatus();
    int64_t offset = metadata.data_offset;
    // Some writers leave a 0 where there is no dictionary.
    if (metadata.dictionary_offset > 0) offset = std::min(offset, metadata.dictionary_offset);
    // The pages of other files are theirs.
    if (!chunk->is_elsewhere &&
        (offset < static_cast<int64_t>(kMagicBytes) || metadata.bytes < 0 ||
         static_cast<uint64_t>(offset) > end_ ||
         static_cast<uint64_t>(metadata.bytes) > end_ - static_cast<uint64_t>(offset))) {
      return wrong(absl::StrCat("has ", metadata.bytes, " bytes at offset ", offset, " of ", end_));
    }
    chunk->offset = static_cast<uint64_t>(offset);
    chunk->bytes = static_cast<uint64_t>(metadata.bytes);
    chunk->values = static_cast<uint64_t>(metadata.values);
    chunk->plain_bytes = static_cast<uint64_t>(metadata.plain_bytes);
    return absl::OkStatus();
  }

  const uint64_t end_;
  ParquetFooter& footer_;
  absl::Status status_;
};

absl::StatusOr<ParquetFooter> ParquetFooter::Read(RandomAccessFile& file) {
  const uint64_t size = file.size();
  const auto wrong = [&](const absl::Status& status, uint64_t offset) {
    return WithMessage(status,
                       absl::StrCat(status.message(), " (", file.path(), ", offset ", offset, ")"));
  };
  const uint64_t tail_at = size < kTailBytes ? 0 : size - kTailBytes;
  const auto none = [&](absl::string_view what) {
    return wrong(absl::DataLossError(absl::StrCat("expected a Parquet file, found none: ", what)),
                 tail_at);
  };
  if (size < kMagicBytes + kTailBytes) return none("it is too short, or was cut");
  char beginning[kMagicBytes], tail[kTailBytes];
  absl::StatusOr<size_t> read =
      file.ReadAt(0, {reinterpret_cast<uint8_t*>(beginning), kMagicBytes});
  if (!read.ok()) return read.status();
  if (*read == kMagicBytes)
    read = file.ReadAt(tail_at, {reinterpret_cast<uint8_t*>(tail), kTailBytes});
  if (!read.ok()) return read.status();
  const auto shrunk = [&] {
    return FileShrunkError(absl::StrCat("the file became shorter than its ", size,
                                        " bytes while it was read (", file.path(), ")"));
  };
  if (*read < kTailBytes) return shrunk();
  if (std::memcmp(tail + 4, kEncryptedMagic, kMagicBytes) == 0)
    return wrong(absl::UnimplementedError("encrypted footers are not read here"), tail_at);
  if (std::memcmp(beginning, kMagic, kMagicBytes) != 0) return none("it does not begin with PAR1");
  if (std::memcmp(tail + 4, kMagic, kMagicBytes) != 0)
    return none("it does not end with PAR1, and was perhaps cut");
  uint32_t bytes = 0;
  std::memcpy(&bytes, tail, sizeof(bytes));
  if (bytes > tail_at - kMagicBytes)
    return none(absl::StrCat("its footer would have ", bytes, " bytes"));
  if (bytes > kMaxParquetFooterBytes) {
    return wrong(absl::InvalidArgumentError(absl::StrCat(
                     "a footer of ", bytes, " bytes; expected at most ", kMaxParquetFooterBytes)),
                 tail_at);
  }
  const uint64_t begin = tail_at - bytes;
  std::vector<uint8_t> memory(bytes);
  read = file.ReadAt(begin, absl::MakeSpan(memory));
  if (!read.ok()) return read.status();
  if (*read < bytes) return shrunk();
  ParquetFooter footer;
  footer.sum_ = crc32_gzip_refl(0, memory.data(), memory.size());
  if (absl::Status status = Builder(begin, &footer).Read(memory); !status.ok())
    return wrong(status, begin);
  return footer;
}

absl::Status ParquetFooter::CheckColumn(size_t column) const {
  const ParquetColumn& found = columns_[column];
  const auto outside = [&](absl::string_view what) {
    return absl::UnimplementedError(absl::StrCat("column \"", absl::StrJoin(found.path, "."),
                                                 "\": ", what, " are not read here"));
  };
  if (found.dtype == DType::kInvalid) return outside(found.outside);
  for (size_t i = 0; i < row_groups_.size(); ++i) {
    const ParquetChunk& one = chunk(i, column);
    if (one.is_encrypted) return outside("encrypted columns");
    if (one.is_elsewhere) return outside("columns in other files");
    switch (one.codec) {
      case ParquetCodec::kUncompressed:
      case ParquetCodec::kSnappy:
      case ParquetCodec::kGzip:
      case ParquetCodec::kZstd:
      case ParquetCodec::kLz4Raw:
        break;
      default:
        return outside(absl::StrCat("pages of codec ", ParquetCodecName(one.codec)));
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock
