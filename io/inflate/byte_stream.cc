#include "io/inflate/byte_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "io/file/crc32c.h"
#include "io/file/damage.h"
#include "io/inflate/deflate_stream.h"
#include "io/inflate/zstd_stream.h"

namespace penstock {
namespace {

constexpr struct {
  const char* name;
  Compression compression;
} kNames[] = {{"", Compression::kNone},
              {"NONE", Compression::kNone},
              {"GZIP", Compression::kGzip},
              {"ZLIB", Compression::kZlib},
              {"ZSTD", Compression::kZstd}};

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(std::shared_ptr<RandomAccessFile> file) : file_(std::move(file)) {}

  absl::StatusOr<size_t> Read(absl::Span<uint8_t> out) override {
    const size_t want = std::min<uint64_t>(out.size(), file_->size() - offset_);
    if (want == 0) return 0;
    absl::StatusOr<size_t> count = file_->ReadAt(offset_, out.first(want));
    if (!count.ok()) return count.status();
    offset_ += *count;
    if (*count == 0) {
      return FileShrunkError(absl::StrCat("the file became shorter than its ", file_->size(),
                                          " bytes while it was read (", file_->path(), ", offset ",
                                          offset_, ")"));
    }
    if (offset_ < file_->size()) file_->WillNeed(offset_, out.size());
    return *count;
  }

  uint64_t SkipUnread(uint64_t bytes) override {
    const uint64_t skipped = std::min(bytes, file_->size() - offset_);
    offset_ += skipped;
    return skipped;
  }

  uint64_t plain_offset() const override { return offset_; }
  uint64_t file_offset() const override { return offset_; }
  const std::string& path() const override { return file_->path(); }

 private:
  const std::shared_ptr<RandomAccessFile> file_;
  uint64_t offset_ = 0;
};

bool BeginsAs(Compression compression, absl::Span<const uint8_t> bytes) {
  switch (compression) {
    case Compression::kNone:
      return true;
    case Compression::kGzip:
      return BeginsAsGzip(bytes);
    case Compression::kZlib:
      return BeginsAsZlib(bytes);
    case Compression::kZstd:
      return BeginsAsZstd(bytes);
  }
  return false;
}

bool BeginsAsTfrecord(absl::Span<const uint8_t> bytes) {
  if (bytes.size() < 12) return false;
  uint64_t length;
  uint32_t stored;
  std::memcpy(&length, bytes.data(), sizeof(length));
  std::memcpy(&stored, bytes.data() + 8, sizeof(stored));
  return MaskCrc32c(Crc32cOfU64(length)) == stored;
}

}  // namespace

absl::StatusOr<Compression> CompressionFromName(absl::string_view name) {
  for (const auto& known : kNames) {
    if (name == known.name) return known.compression;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown compression: expected \"\", NONE, GZIP, ZLIB or ZSTD, found \"", name, "\""));
}

const char* CompressionName(Compression compression) {
  for (const auto& known : kNames) {
    if (known.compression == compression && known.name[0] != '\0') return known.name;
  }
  return "?";
}

const char* GuessFormat(absl::Span<const uint8_t> beginning) {
  if (BeginsAsTfrecord(beginning)) return "plain TFRecord";
  if (BeginsAsGzip(beginning)) return "gzip";
  if (BeginsAsZstd(beginning)) return "zstd";
  // Less than all that zlib may begin with, or much text would be taken for it.
  if (beginning.size() > 1 && beginning[0] == 0x78 &&
      (beginning[1] == 0x01 || beginning[1] == 0x9c || beginning[1] == 0xda)) {
    return "zlib";
  }
  return "";
}

absl::StatusOr<std::unique_ptr<ByteStream>> OpenStream(std::shared_ptr<RandomAccessFile> file,
                                                       Compression compression,
                                                       size_t piece_bytes) {
  if (compression == Compression::kNone) return std::make_unique<PlainStream>(std::move(file));
  uint8_t bytes[12];
  absl::StatusOr<size_t> count = file->ReadAt(0, absl::MakeSpan(bytes));
  if (!count.ok()) return count.status();
  const absl::Span<const uint8_t> beginning(bytes, *count);
  if (!beginning.empty() && !BeginsAs(compression, beginning)) {
    const absl::string_view guess = GuessFormat(beginning);
    return absl::DataLossError(
        absl::StrCat("the file is declared ", CompressionName(compression),
                     " but does not begin as such a file does",
                     guess.empty() ? "" : absl::StrCat(": it looks like ", guess), " (",
                     file->path(), ", compressed offset 0)"));
  }
  if (compression == Compression::kZstd) return OpenZstdStream(std::move(file), piece_bytes);
  return OpenDeflateStream(std::move(file), compression == Compression::kGzip, piece_bytes);
}

}  // namespace penstock
