#include "io/inflate/zstd_stream.h"

#include <zstd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "io/inflate/compressed_input.h"

namespace penstock {
namespace {

// What `zstd -d` accepts without being asked: 128 MiB.
constexpr int kWindowBitsMax = 27;

class ZstdStream final : public ByteStream {
 public:
  ZstdStream(std::shared_ptr<RandomAccessFile> file, size_t piece_bytes)
      : input_(std::move(file), piece_bytes, /*may_borrow=*/false), context_(ZSTD_createDCtx()) {
    if (context_ == nullptr) {
      error_ = absl::ResourceExhaustedError("no memory for a zstd decompressor");
    } else {
      ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kWindowBitsMax);
    }
  }

  absl::StatusOr<size_t> Read(absl::Span<uint8_t> out) override {
    size_t done = 0;
    while (done < out.size() && error_.ok()) {
      error_ = input_.Ensure(1);
      if (!error_.ok() || (input_.at_end() && !in_frame_)) break;
      done += Decompress(out.subspan(done));
    }
    if (done == 0 && !error_.ok()) return error_;
    return done;
  }

  uint64_t plain_offset() const override { return plain_offset_; }
  uint64_t file_offset() const override { return input_.offset(); }
  const std::string& path() const override { return input_.file().path(); }

 private:
  size_t Decompress(absl::Span<uint8_t> out) {
    ZSTD_inBuffer in = {input_.data(), input_.size(), 0};
    ZSTD_outBuffer plain = {out.data(), out.size(), 0};
    const size_t result = ZSTD_decompressStream(context_.get(), &plain, &in);
    input_.Consume(in.pos);
    plain_offset_ += plain.pos;
    if (ZSTD_isError(result)) {
      Fail(ZSTD_getErrorName(result));
      return plain.pos;
    }
    if (in.size == 0 && plain.pos == 0 && result != 0)
      Fail("the file is cut: it ends inside a frame");
    in_frame_ = result != 0;
    return plain.pos;
  }

  void Fail(absl::string_view why) {
    error_ = absl::DataLossError(absl::StrCat("bad zstd data: ", why, " (", path(),
                                              ", compressed offset ", file_offset(),
                                              ", plain offset ", plain_offset_, ")"));
  }

  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  CompressedInput input_;
  const std::unique_ptr<ZSTD_DCtx, Free> context_;
  bool in_frame_ = false;
  uint64_t plain_offset_ = 0;
  absl::Status error_;
};

}  // namespace

bool BeginsAsZstd(absl::Span<const uint8_t> bytes) {
  static constexpr uint8_t kMagic[] = {0x28, 0xb5, 0x2f, 0xfd};
  static constexpr uint8_t kSkippable[] = {0x2a, 0x4d, 0x18};  // behind a byte 0x50 to 0x5f
  if (bytes.size() < 4) return false;
  return std::equal(kMagic, kMagic + 4, bytes.data()) ||
         (bytes[0] >> 4 == 5 && std::equal(kSkippable, kSkippable + 3, bytes.data() + 1));
}

std::unique_ptr<ByteStream> OpenZstdStream(std::shared_ptr<RandomAccessFile> file,
                                           size_t piece_bytes) {
  return std::make_unique<ZstdStream>(std::move(file), piece_bytes);
}

}  // namespace penstock
