#include "io/parquet/parquet_codec.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/in_pieces.h"
#include "io/arrow/lz4_block.h"
#include "io/inflate/byte_stream.h"
#include "io/inflate/zstd_frames.h"
#include "io/parquet/snappy_block.h"

namespace penstock {
namespace {

// Deflate gives 258 bytes for two bits.
constexpr uint64_t kMaxGzipRatio = 1032;
// Read by the stream behind the plain bytes, where there should be none.
constexpr size_t kBehind = 1;
static_assert(kBehind <= Arena::kPadding);

// Bytes in memory as a file, for who reads files.
class BytesAsFile final : public RandomAccessFile {
 public:
  explicit BytesAsFile(absl::Span<const uint8_t> bytes) : bytes_(bytes) {}
  const std::string& path() const override { return path_; }
  uint64_t size() const override { return bytes_.size(); }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<uint8_t> out) override {
    if (offset >= bytes_.size()) return 0;
    const size_t count = std::min<size_t>(out.size(), bytes_.size() - offset);
    std::copy_n(bytes_.data() + offset, count, out.data());
    return count;
  }
  absl::Span<const uint8_t> Near(uint64_t offset, size_t bytes) override {
    if (offset >= bytes_.size()) return {};
    return bytes_.subspan(offset, bytes);
  }

 private:
  const std::string path_;
  const absl::Span<const uint8_t> bytes_;
};

absl::Status CheckRatio(absl::Span<const uint8_t> packed, uint64_t plain_bytes, uint64_t ratio) {
  if (plain_bytes / ratio <= packed.size()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("it would hold ", plain_bytes, " bytes, more than ", packed.size(), " can"));
}

absl::Status CheckSize(ParquetCodec codec, absl::Span<const uint8_t> packed, uint64_t plain_bytes) {
  switch (codec) {
    case ParquetCodec::kSnappy:
      return CheckSnappySize(packed, plain_bytes);
    case ParquetCodec::kGzip:
      return CheckRatio(packed, plain_bytes, kMaxGzipRatio);
    case ParquetCodec::kLz4Raw:
      return CheckRatio(packed, plain_bytes, kMaxLz4Ratio);
    case ParquetCodec::kZstd:
      return CheckZstdSize(packed, plain_bytes);
    default:
      return absl::UnimplementedError(
          absl::StrCat("pages of codec ", ParquetCodecName(codec), " are not read here"));
  }
}

// Members of gzip, one after another.
absl::Status UnpackGzip(absl::Span<const uint8_t> packed, ArrowMemory* memory) {
  absl::StatusOr<std::unique_ptr<ByteStream>> stream =
      OpenStream(std::make_shared<BytesAsFile>(packed), Compression::kGzip);
  if (!stream.ok()) return absl::DataLossError("it is no gzip member");
  uint64_t done = 0;
  while (true) {
    CheckStop();
    const size_t room =
        done < memory->bytes ? std::min<uint64_t>(memory->bytes - done, kPieceBytes) : kBehind;
    absl::StatusOr<size_t> count =
        (*stream)->Read(absl::MakeSpan(memory->block.get() + done, room));
    if (!count.ok()) return absl::DataLossError("its gzip members are damaged");
    if (*count == 0) break;
    done += *count;
    if (done > memory->bytes) return absl::DataLossError("its gzip members hold more bytes");
  }
  if (done == memory->bytes) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("its gzip members hold ", done, " bytes, not ", memory->bytes));
}

absl::Status UnpackLz4(absl::Span<const uint8_t> packed, absl::Span<uint8_t> plain) {
  uint8_t* const end = plain.data() + plain.size();
  const uint8_t* const found = UnpackLz4Block(packed, plain.data(), plain.data(), end);
  if (found == end) return absl::OkStatus();
  return absl::DataLossError("its LZ4 block is damaged, or holds more or fewer bytes");
}

}  // namespace

absl::StatusOr<ArrowMemory> UnpackParquetBody(ParquetCodec codec, absl::Span<const uint8_t> packed,
                                              uint64_t plain_bytes) {
  if (absl::Status status = CheckSize(codec, packed, plain_bytes); !status.ok()) return status;
  ArrowMemory memory = AllocateArrowMemory(plain_bytes);
  const absl::Span<uint8_t> plain = absl::MakeSpan(memory.block.get(), memory.bytes);
  absl::Status status;
  switch (codec) {
    case ParquetCodec::kSnappy:
      status = UnpackSnappyBlock(packed, plain);
      break;
    case ParquetCodec::kGzip:
      status = UnpackGzip(packed, &memory);
      break;
    case ParquetCodec::kLz4Raw:
      status = UnpackLz4(packed, plain);
      break;
    default:
      status = UnpackZstdFrames(packed, plain);
      break;
  }
  if (!status.ok()) return status;
  return memory;
}

}  // namespace penstock
