#include "io/parquet/parquet_codec.h"

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/stop_flag.h"
#include "io/arrow/lz4_block.h"
#include "io/inflate/byte_stream.h"
#include "io/inflate/zstd_frames.h"
#include "io/parquet/snappy_block.h"

namespace penstock {
namespace {

// Deflate gives 258 bytes for two bits.
constexpr uint64_t kMaxGzipRatio = 1032;
// Between two looks for a stop: some milliseconds.
constexpr uint64_t kInflatedAtOnce = uint64_t{2} << 20;
// Read by the stream behind the plain bytes, where there should be none.
constexpr size_t kBehind = 1;

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

// Members of gzip, one after another.
absl::Status UnpackGzip(absl::Span<const uint8_t> packed, absl::Span<uint8_t> plain) {
  absl::StatusOr<std::unique_ptr<ByteStream>> stream =
      OpenStream(std::make_shared<BytesAsFile>(packed), Compression::kGzip);
  if (!stream.ok()) return absl::DataLossError("it is no gzip member");
  uint64_t done = 0;
  while (true) {
    CheckStop();
    const size_t room =
        done < plain.size() ? std::min<uint64_t>(plain.size() - done, kInflatedAtOnce) : kBehind;
    absl::StatusOr<size_t> count = (*stream)->Read(absl::MakeSpan(plain.data() + done, room));
    if (!count.ok()) return absl::DataLossError("its gzip members are damaged");
    if (*count == 0) break;
    done += *count;
    if (done > plain.size()) return absl::DataLossError("its gzip members hold more bytes");
  }
  if (done == plain.size()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("its gzip members hold ", done, " bytes, not ", plain.size()));
}

absl::Status UnpackLz4(absl::Span<const uint8_t> packed, absl::Span<uint8_t> plain) {
  uint8_t* const end = plain.data() + plain.size();
  const uint8_t* const found = UnpackLz4Block(packed, plain.data(), plain.data(), end);
  if (found == end) return absl::OkStatus();
  return absl::DataLossError("its LZ4 block is damaged, or holds more or fewer bytes");
}

}  // namespace

absl::Status CheckParquetSize(ParquetCodec codec, absl::Span<const uint8_t> packed,
                              uint64_t plain_bytes) {
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

absl::Status UnpackParquetBody(ParquetCodec codec, absl::Span<const uint8_t> packed,
                               absl::Span<uint8_t> plain) {
  switch (codec) {
    case ParquetCodec::kSnappy:
      return UnpackSnappyBlock(packed, plain);
    case ParquetCodec::kGzip:
      return UnpackGzip(packed, plain);
    case ParquetCodec::kLz4Raw:
      return UnpackLz4(packed, plain);
    default:
      return UnpackZstdFrames(packed, plain);
  }
}

}  // namespace penstock
