#include "io/parquet/parquet_pages.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "io/file/damage.h"
#include "io/parquet/thrift_compact.h"

namespace penstock {
namespace {

// Mostly all of a header, with the bounds of its values.
constexpr uint64_t kFirstReadBytes = 512;

// The numbers of the fields in their structs.
enum HeaderField {
  kKind = 1,
  kPlainBytes = 2,
  kBytes = 3,
  kSum = 4,
  kDataHeader = 5,
  kDictionaryHeader = 7,
  kDataHeader2 = 8,
};
enum DataField { kValues = 1, kEncoding = 2, kDefinitionEncoding = 3 };
enum Data2Field {
  kValues2 = 1,
  kNulls = 2,
  kRows = 3,
  kEncoding2 = 4,
  kDefinitionBytes = 5,
  kRepetitionBytes = 6,
  kIsCompressed = 7,
};
enum Kind { kDataPage = 0, kIndexPage = 1, kDictionaryPage = 2, kDataPage2 = 3 };

absl::Status Unsound(const std::string& what) {
  return absl::DataLossError(absl::StrCat("the header of a page is not sound: ", what));
}

// A header as it stands there.
struct Header {
  int64_t kind = -1;
  int64_t plain_bytes = -1;
  int64_t bytes = -1;
  std::optional<int64_t> sum;
  int64_t values = -1;
  int64_t encoding = -1;
  int64_t definition_encoding = static_cast<int64_t>(ParquetEncoding::kRle);
  int64_t nulls = 0;
  int64_t rows = -1;
  int64_t definition_bytes = 0;
  int64_t repetition_bytes = 0;
  bool is_compressed = true;
  uint64_t header_bytes = 0;
};

void ReadData(ThriftReader& reader, Header* header) {
  reader.Inner([&](int field) {
    if (field == kValues) header->values = reader.Number();
    if (field == kEncoding) header->encoding = reader.Number();
    if (field == kDefinitionEncoding) header->definition_encoding = reader.Number();
  });
}

void ReadDictionary(ThriftReader& reader, Header* header) {
  reader.Inner([&](int field) {
    if (field == kValues) header->values = reader.Number();
    if (field == kEncoding) header->encoding = reader.Number();
  });
}

void ReadData2(ThriftReader& reader, Header* header) {
  reader.Inner([&](int field) {
    switch (field) {
      case kValues2:
        header->values = reader.Number();
        break;
      case kNulls:
        header->nulls = reader.Number();
        break;
      case kRows:
        header->rows = reader.Number();
        break;
      case kEncoding2:
        header->encoding = reader.Number();
        break;
      case kDefinitionBytes:
        header->definition_bytes = reader.Number();
        break;
      case kRepetitionBytes:
        header->repetition_bytes = reader.Number();
        break;
      case kIsCompressed:
        header->is_compressed = reader.Bool();
        break;
      default:
        break;
    }
  });
}

void ReadHeader(ThriftReader& reader, Header* header) {
  *header = {};
  reader.Struct([&](int field) {
    switch (field) {
      case kKind:
        header->kind = reader.Number();
        break;
      case kPlainBytes:
        header->plain_bytes = reader.Number();
        break;
      case kBytes:
        header->bytes = reader.Number();
        break;
      case kSum:
        header->sum = reader.Number();
        break;
      case kDataHeader:
        ReadData(reader, header);
        break;
      case kDictionaryHeader:
        ReadDictionary(reader, header);
        break;
      case kDataHeader2:
        ReadData2(reader, header);
        break;
      default:
        break;
    }
  });
  header->header_bytes = reader.position();
}

absl::Status CheckBody(const Header& header, uint64_t left) {
  if (header.bytes < 0 || header.plain_bytes < 0)
    return Unsound(
        absl::StrCat("a body of ", header.bytes, " bytes, ", header.plain_bytes, " unpacked"));
  const auto most = static_cast<int64_t>(kMaxParquetPageBytes);
  if (header.bytes > most || header.plain_bytes > most) {
    return absl::DataLossError(absl::StrCat("a page of ",
                                            std::max(header.bytes, header.plain_bytes),
                                            " bytes; expected at most ", most));
  }
  if (static_cast<uint64_t>(header.bytes) > left) {
    return Unsound(
        absl::StrCat("a body of ", header.bytes, " bytes, where its column has ", left, " left"));
  }
  return absl::OkStatus();
}

// Of a data page or a dictionary.
absl::Status Take(const Header& header, ParquetPage* page) {
  if (header.values < 0) return Unsound(absl::StrCat(header.values, " values"));
  if (header.encoding < 0 || header.encoding > UINT8_MAX || header.definition_encoding < 0 ||
      header.definition_encoding > UINT8_MAX)
    return Unsound(absl::StrCat("encoding ", header.encoding));
  page->bytes = static_cast<uint32_t>(header.bytes);
  page->plain_bytes = static_cast<uint32_t>(header.plain_bytes);
  page->values = static_cast<uint32_t>(header.values);
  page->encoding = static_cast<ParquetEncoding>(header.encoding);
  page->level_encoding = static_cast<ParquetEncoding>(header.definition_encoding);
  if (header.sum) page->sum = static_cast<uint32_t>(*header.sum);
  if (header.kind != kDataPage2) return absl::OkStatus();
  page->is_version_2 = true;
  page->is_compressed = header.is_compressed;
  if (header.nulls < 0 || header.nulls > header.values)
    return Unsound(absl::StrCat(header.nulls, " nulls of ", header.values, " values"));
  page->nulls = static_cast<uint32_t>(header.nulls);
  const int64_t least = std::min(header.bytes, header.plain_bytes);
  if (header.definition_bytes < 0 || header.repetition_bytes < 0 ||
      header.definition_bytes > least || header.repetition_bytes > least - header.definition_bytes)
    return Unsound(absl::StrCat("levels of ", header.repetition_bytes, " and ",
                                header.definition_bytes, " bytes of ", least));
  page->definition_bytes = static_cast<uint32_t>(header.definition_bytes);
  page->repetition_bytes = static_cast<uint32_t>(header.repetition_bytes);
  return absl::OkStatus();
}

// Reads the header at `offset`, with as many bytes as it takes.
absl::Status ReadHeaderAt(RandomAccessFile& file, uint64_t offset, uint64_t end,
                          std::vector<uint8_t>* memory, Header* header) {
  const uint64_t most = std::min(end - offset, kMaxParquetHeaderBytes);
  for (uint64_t bytes = std::min(kFirstReadBytes, most);; bytes = std::min(bytes * 8, most)) {
    memory->resize(bytes);
    absl::StatusOr<size_t> read = file.ReadAt(offset, absl::MakeSpan(*memory));
    if (!read.ok()) return read.status();
    if (*read < bytes) {
      return FileShrunkError(absl::StrCat("the file became shorter than its ", file.size(),
                                          " bytes while it was read"));
    }
    ThriftReader reader(*memory);
    ReadHeader(reader, header);
    if (!reader.malformed()) return absl::OkStatus();
    if (!reader.ended()) return Unsound("it is no PageHeader");
    if (bytes == most) {
      return most == kMaxParquetHeaderBytes
                 ? Unsound(absl::StrCat("it is longer than ", most, " bytes"))
                 : Unsound("its column ends inside of it");
    }
  }
}

}  // namespace

std::string ParquetEncodingName(ParquetEncoding encoding) {
  constexpr const char* kNames[] = {"PLAIN",
                                    nullptr,
                                    "PLAIN_DICTIONARY",
                                    "RLE",
                                    "BIT_PACKED",
                                    "DELTA_BINARY_PACKED",
                                    "DELTA_LENGTH_BYTE_ARRAY",
                                    "DELTA_BYTE_ARRAY",
                                    "RLE_DICTIONARY",
                                    "BYTE_STREAM_SPLIT"};
  const auto number = static_cast<size_t>(encoding);
  if (number < std::size(kNames) && kNames[number] != nullptr) return kNames[number];
  return absl::StrCat("encoding ", number);
}

absl::StatusOr<ParquetPages> ReadParquetPages(RandomAccessFile& file, const ParquetChunk& chunk) {
  ParquetPages pages;
  std::vector<uint8_t> memory;
  const uint64_t end = chunk.offset + chunk.bytes;
  uint64_t offset = chunk.offset;
  const auto wrong = [&](const absl::Status& status) {
    return WithMessage(status,
                       absl::StrCat(status.message(), " (", file.path(), ", offset ", offset, ")"));
  };
  uint64_t rows = 0;
  while (rows < chunk.values) {
    CheckStop();
    if (offset == end) {
      return wrong(absl::DataLossError(
          absl::StrCat("a column ends with ", rows, " values; expected ", chunk.values)));
    }
    Header header;
    absl::Status status = ReadHeaderAt(file, offset, end, &memory, &header);
    if (status.ok()) status = CheckBody(header, end - offset - header.header_bytes);
    if (!status.ok()) return wrong(status);
    ParquetPage page;
    page.offset = offset + header.header_bytes;
    page.first_row = rows;
    switch (header.kind) {
      case kDictionaryPage:
        if (pages.dictionary || !pages.data.empty())
          return wrong(Unsound("a dictionary that is not the first page"));
        status = Take(header, &page);
        if (status.ok()) pages.dictionary = page;
        break;
      case kDataPage:
      case kDataPage2:
        status = Take(header, &page);
        if (status.ok() && header.kind == kDataPage2 && header.rows != header.values)
          status = Unsound(absl::StrCat(header.rows, " rows of ", header.values, " values"));
        if (status.ok() && page.values > chunk.values - rows) {
          status = Unsound(absl::StrCat(page.values, " values, where its column has ",
                                        chunk.values - rows, " left"));
        }
        if (!status.ok()) break;
        rows += page.values;
        if (page.values > 0) pages.data.push_back(page);
        break;
      default:
        // Index pages, and what comes in later versions.
        break;
    }
    if (!status.ok()) return wrong(status);
    offset = page.offset + static_cast<uint64_t>(header.bytes);
  }
  return pages;
}

}  // namespace penstock
