#include "io/inflate/deflate_stream.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "io/inflate/compressed_input.h"
#include "io/inflate/inflater.h"

namespace penstock {
namespace {

class DeflateStream final : public ByteStream {
 public:
  DeflateStream(std::shared_ptr<RandomAccessFile> file, bool gzip, size_t piece_bytes)
      : input_(std::move(file), piece_bytes, /*may_borrow=*/true),
        inflater_(&input_),
        gzip_(gzip) {}

  absl::StatusOr<size_t> Read(absl::Span<uint8_t> out) override {
    size_t done = 0;
    while (done == 0 && !ended_ && error_.ok()) {
      if (!in_member_) {
        StartMember();
      } else if (inflater_.ended()) {
        EndMember();
      } else {
        done = Inflate(out);
      }
    }
    if (done == 0 && !error_.ok()) return error_;
    return done;
  }

  size_t history_bytes() const override { return Inflater::kHistoryBytes; }
  uint64_t plain_offset() const override { return plain_offset_; }
  uint64_t file_offset() const override { return input_.offset() - inflater_.unused_bytes(); }
  const std::string& path() const override { return input_.file().path(); }

 private:
  // Looks for the next member: there is one, or the file ends.
  void StartMember() {
    error_ = input_.Ensure(16);
    if (!error_.ok()) return;
    if (input_.at_end()) {
      ended_ = true;
      return;
    }
    const absl::Span<const uint8_t> bytes(input_.data(), input_.size());
    // Zeros, with which some programs pad files, are none either, as for TensorFlow's reader.
    if (!(gzip_ ? BeginsAsGzip(bytes) : BeginsAsZlib(bytes))) {
      Fail(absl::StrCat("bytes behind the last member are no ", name(), " member"));
      return;
    }
    if (gzip_ ? !PassGzipHeader() : !PassZlibHeader()) return;
    inflater_.Start();
    checksum_ = gzip_ ? 0 : 1;
    member_bytes_ = 0;
    in_member_ = true;
    ++num_members_;
  }

  bool NextByte(uint8_t* byte) {
    error_ = input_.Ensure(1);
    if (!error_.ok()) return false;
    if (input_.size() == 0) {
      Fail(Inflater::kCut);
      return false;
    }
    *byte = *input_.data();
    input_.Consume(1);
    return true;
  }

  bool HeaderByte(uint8_t* byte) {
    if (!NextByte(byte)) return false;
    header_crc_ = crc32_gzip_refl(header_crc_, byte, 1);
    return true;
  }

  bool PassText() {
    uint8_t byte = 1;
    while (byte != 0) {
      if (!HeaderByte(&byte)) return false;
    }
    return true;
  }

  // RFC 1952, 2.3: magic, method, flags, time, system; then what the flags say.
  bool PassGzipHeader() {
    header_crc_ = 0;
    uint8_t fixed[10];
    for (uint8_t& byte : fixed) {
      if (!HeaderByte(&byte)) return false;
    }
    const uint8_t flags = fixed[3];
    if ((flags & 4) != 0) {
      uint8_t low;
      uint8_t high;
      if (!HeaderByte(&low) || !HeaderByte(&high)) return false;
      uint8_t ignored;
      for (uint32_t left = low | high << 8; left > 0; --left) {
        if (!HeaderByte(&ignored)) return false;
      }
    }
    if ((flags & 8) != 0 && !PassText()) return false;
    if ((flags & 16) != 0 && !PassText()) return false;
    if ((flags & 2) != 0) {
      const uint32_t expected = header_crc_ & 0xffff;
      uint8_t low;
      uint8_t high;
      if (!HeaderByte(&low) || !HeaderByte(&high)) return false;
      if (static_cast<uint32_t>(low | high << 8) != expected) {
        Fail("checksum in the header does not match");
        return false;
      }
    }
    return true;
  }

  // RFC 1950, 2.2: method and flags, whose check BeginsAsZlib has made.
  bool PassZlibHeader() {
    uint8_t method;
    uint8_t flags;
    if (!HeaderByte(&method) || !HeaderByte(&flags)) return false;
    if ((flags & 0x20) == 0) return true;
    Fail("a preset dictionary is needed, which files do not carry");
    return false;
  }

  size_t Inflate(absl::Span<uint8_t> out) {
    const size_t count = inflater_.Inflate(out);
    checksum_ = gzip_ ? crc32_gzip_refl(checksum_, out.data(), count)
                      : isal_adler32(checksum_, out.data(), count);
    member_bytes_ += count;
    plain_offset_ += count;
    error_ = inflater_.error();
    if (inflater_.damage() != nullptr) Fail(inflater_.damage());
    return count;
  }

  // Checks the trailer: of gzip the CRC-32 and the number of bytes modulo 2^32, of zlib the
  // Adler-32, its highest byte first.
  void EndMember() {
    uint8_t trailer[8];
    const size_t size = gzip_ ? 8 : 4;
    for (size_t i = 0; i < size; ++i) {
      if (!NextByte(&trailer[i])) return;
    }
    in_member_ = false;
    uint32_t words[2];
    std::memcpy(words, trailer, sizeof(words));
    const bool matches = gzip_ ? words[0] == checksum_ && words[1] == member_bytes_
                               : __builtin_bswap32(words[0]) == checksum_;
    if (!matches) Fail("checksum or length in the trailer does not match");
  }

  void Fail(absl::string_view why) {
    error_ = input_.file().CheckNear();
    if (!error_.ok()) return;
    error_ = absl::DataLossError(absl::StrCat("bad ", name(), " data: ", why, " (", path(),
                                              ", compressed offset ", file_offset(),
                                              ", plain offset ", plain_offset_, ")"));
  }

  const char* name() const { return gzip_ ? "gzip" : "zlib"; }

  CompressedInput input_;
  Inflater inflater_;
  const bool gzip_;
  uint32_t header_crc_ = 0;
  uint32_t checksum_ = 0;
  uint32_t member_bytes_ = 0;  // modulo 2^32
  bool in_member_ = false;
  bool ended_ = false;
  uint64_t num_members_ = 0;
  uint64_t plain_offset_ = 0;
  absl::Status error_;
};

}  // namespace

bool BeginsAsGzip(absl::Span<const uint8_t> bytes) {
  static constexpr uint8_t kMagic[] = {0x1f, 0x8b, 8};
  return !bytes.empty() &&
         std::equal(kMagic, kMagic + std::min<size_t>(bytes.size(), 3), bytes.data()) &&
         (bytes.size() < 4 || (bytes[3] & 0xe0) == 0);
}

bool BeginsAsZlib(absl::Span<const uint8_t> bytes) {
  return !bytes.empty() && (bytes[0] & 0x0f) == 8 && bytes[0] >> 4 <= 7 &&
         (bytes.size() < 2 || (bytes[0] << 8 | bytes[1]) % 31 == 0);
}

std::unique_ptr<ByteStream> OpenDeflateStream(std::shared_ptr<RandomAccessFile> file, bool gzip,
                                              size_t piece_bytes) {
  return std::make_unique<DeflateStream>(std::move(file), gzip, piece_bytes);
}

}  // namespace penstock
