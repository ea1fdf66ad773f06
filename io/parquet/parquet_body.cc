#include "io/parquet/parquet_body.h"

#include <isa-l/crc.h>

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "base/pending_call.h"
#include "io/file/damage.h"
#include "io/parquet/parquet_codec.h"

namespace penstock {
namespace {

// Where bytes of a page go: to memory of their own, or to the scratch.
uint8_t* MakeRoom(uint64_t bytes, bool stays, Arena& scratch, ArrowMemory* memory) {
  if (!stays) return scratch.Allocate(bytes);
  *memory = AllocateArrowMemory(bytes);
  return memory->block.get();
}

// The bytes of the body as they are in the file.
absl::StatusOr<absl::Span<const uint8_t>> ReadPacked(const ParquetInput& input,
                                                     const ParquetPage& page, bool stays,
                                                     Arena& scratch, ArrowMemory* memory) {
  if (input.map != nullptr) return absl::MakeConstSpan(input.map + page.offset, page.bytes);
  const absl::Span<uint8_t> room =
      absl::MakeSpan(MakeRoom(page.bytes, stays, scratch, memory), page.bytes);
  const PendingCall call("reading", input.file->path(), page.offset);
  absl::StatusOr<size_t> read = input.file->ReadAt(page.offset, room);
  if (!read.ok()) return read.status();
  if (*read < page.bytes) {
    return FileShrunkError(absl::StrCat("the file became shorter than its ", input.file->size(),
                                        " bytes while it was read"));
  }
  return room;
}

uint32_t SumOf(absl::Span<const uint8_t> bytes) {
  uint32_t sum = 0;
  InPieces(
      bytes.size(),
      [&](size_t first, size_t count) { sum = crc32_gzip_refl(sum, bytes.data() + first, count); },
      kPieceBytes);
  return sum;
}

absl::Status CheckSum(absl::Span<const uint8_t> packed, const ParquetPage& page) {
  if (!page.sum) return absl::OkStatus();
  const uint32_t found = SumOf(packed);
  if (found == *page.sum) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the checksum of a page does not hold: expected ",
                                          *page.sum, ", found ", found));
}

// The plain bytes of what is packed.
absl::StatusOr<absl::Span<const uint8_t>> Unpack(ParquetCodec codec,
                                                 absl::Span<const uint8_t> packed,
                                                 uint64_t plain_bytes, bool stays, Arena& scratch,
                                                 ArrowMemory* memory) {
  if (packed.empty() && plain_bytes == 0) return packed;
  absl::Status status = CheckParquetSize(codec, packed, plain_bytes);
  absl::Span<uint8_t> plain;
  if (status.ok()) {
    plain = absl::MakeSpan(MakeRoom(plain_bytes, stays, scratch, memory), plain_bytes);
    status = UnpackParquetBody(codec, packed, plain);
  }
  if (status.ok()) return plain;
  if (!absl::IsDataLoss(status)) return status;
  return absl::DataLossError(absl::StrCat("a page cannot be unpacked: ", status.message()));
}

absl::Status CheckUnpacked(const ParquetPage& page) {
  if (page.bytes == page.plain_bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("a page that is not compressed has ", page.bytes,
                                          " bytes, and should have ", page.plain_bytes));
}

// Takes the levels from the front of the plain bytes.
absl::Status TakeLevels(const ParquetPage& page, absl::Span<const uint8_t> plain,
                        ParquetBody* body) {
  if (page.level_encoding != ParquetEncoding::kRle) {
    return absl::UnimplementedError(absl::StrCat(
        "levels of encoding ", ParquetEncodingName(page.level_encoding), " are not read here"));
  }
  uint32_t bytes = 0;
  if (plain.size() >= sizeof(bytes)) std::memcpy(&bytes, plain.data(), sizeof(bytes));
  if (plain.size() < sizeof(bytes) || bytes > plain.size() - sizeof(bytes)) {
    return absl::DataLossError(
        absl::StrCat("a page has levels of ", bytes, " bytes, and has ", plain.size()));
  }
  body->levels = plain.subspan(sizeof(bytes), bytes);
  body->values = plain.subspan(sizeof(bytes) + bytes);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ParquetBody> ReadParquetBody(const ParquetInput& input, ParquetCodec codec,
                                            const ParquetPage& page, bool has_levels, bool stays,
                                            Arena& scratch) {
  const bool is_packed = codec != ParquetCodec::kUncompressed && page.is_compressed;
  if (!is_packed) {
    if (absl::Status status = CheckUnpacked(page); !status.ok()) return status;
  }
  ParquetBody body;
  absl::StatusOr<absl::Span<const uint8_t>> packed =
      ReadPacked(input, page, stays && !is_packed, scratch, &body.memory);
  if (!packed.ok()) return packed.status();
  if (absl::Status status = CheckSum(*packed, page); !status.ok()) return status;
  if (page.is_version_2) {
    const uint32_t levels = page.repetition_bytes + page.definition_bytes;
    body.levels = packed->subspan(page.repetition_bytes, page.definition_bytes);
    body.values = packed->subspan(levels);
    if (!is_packed) return body;
    absl::StatusOr<absl::Span<const uint8_t>> values =
        Unpack(codec, body.values, page.plain_bytes - levels, stays, scratch, &body.memory);
    if (!values.ok()) return values.status();
    body.values = *values;
    return body;
  }
  absl::Span<const uint8_t> plain = *packed;
  if (is_packed) {
    absl::StatusOr<absl::Span<const uint8_t>> found =
        Unpack(codec, plain, page.plain_bytes, stays, scratch, &body.memory);
    if (!found.ok()) return found.status();
    plain = *found;
  }
  body.values = plain;
  if (!has_levels) return body;
  if (absl::Status status = TakeLevels(page, plain, &body); !status.ok()) return status;
  return body;
}

absl::Status AtParquetPage(const absl::Status& status, const RandomAccessFile& file,
                           const ParquetPage& page) {
  if (status.ok() || absl::StrContains(status.message(), file.path())) return status;
  return WithMessage(
      status, absl::StrCat(status.message(), " (", file.path(), ", offset ", page.offset, ")"));
}

}  // namespace penstock
