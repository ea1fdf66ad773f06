#include "server/io/deflate_stream.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/io/compressed_input.h"

namespace penstock {
namespace {

const char* Describe(int result) {
  switch (result) {
    case ISAL_INVALID_BLOCK:
      return "invalid block";
    case ISAL_INVALID_SYMBOL:
      return "invalid symbol";
    case ISAL_INVALID_LOOKBACK:
      return "reference to before the beginning";
    case ISAL_INVALID_WRAPPER:
      return "invalid header";
    case ISAL_UNSUPPORTED_METHOD:
      return "unsupported method";
    case ISAL_INCORRECT_CHECKSUM:
      return "checksum or length in the trailer does not match";
    case ISAL_NEED_DICT:
      return "a preset dictionary is needed, which files do not carry";
    default:
      return "unknown error";
  }
}

class DeflateStream final : public ByteStream {
 public:
  DeflateStream(std::shared_ptr<RandomAccessFile> file, bool gzip, size_t piece_bytes)
      : input_(std::move(file), piece_bytes), gzip_(gzip) {
    isal_inflate_init(&state_);
  }

  absl::StatusOr<size_t> Read(absl::Span<uint8_t> out) override {
    size_t done = 0;
    while (done < out.size() && !ended_ && error_.ok()) {
      if (in_member_) {
        done += Inflate(out.subspan(done));
      } else {
        StartMember();
      }
    }
    if (done == 0 && !error_.ok()) return error_;
    return done;
  }

  uint64_t plain_offset() const override { return plain_offset_; }
  uint64_t file_offset() const override {
    // Whole bytes that wait in the bit buffer were consumed from the input, but not yet used.
    return input_.offset() - (in_member_ ? std::max(state_.read_in_length, 0) / 8 : 0);
  }
  const std::string& path() const override { return input_.file().path(); }

 private:
  // Looks for the next member: there is one, or the file ends.
  void StartMember() {
    error_ = input_.Ensure(16);
    if (!error_.ok()) return;
    // Some programs pad files with zeros, which gzip passes over too.
    while (num_members_ > 0 && input_.size() > 0 && *input_.data() == 0) {
      padded_ = true;
      input_.Consume(1);
      error_ = input_.Ensure(16);
      if (!error_.ok()) return;
    }
    if (input_.at_end()) {
      ended_ = true;
      return;
    }
    const absl::Span<const uint8_t> bytes(input_.data(), input_.size());
    if (padded_ || !(gzip_ ? BeginsAsGzip(bytes) : BeginsAsZlib(bytes))) {
      Fail(absl::StrCat("bytes behind the last member are no ", name(), " member"));
      return;
    }
    if (gzip_ ? !PassGzipHeader() : !PassZlibHeader()) return;
    isal_inflate_reset(&state_);
    // What is behind the header, with the trailer checked.
    state_.crc_flag = gzip_ ? ISAL_GZIP_NO_HDR_VER : ISAL_ZLIB_NO_HDR_VER;
    in_member_ = true;
    ++num_members_;
  }

  // Headers are read here: ISA-L forgets a gzip header's flags where a piece of input ends inside it.
  bool HeaderByte(uint8_t* byte) {
    error_ = input_.Ensure(1);
    if (!error_.ok()) return false;
    if (input_.size() == 0) {
      Fail("the file is cut: it ends inside a member");
      return false;
    }
    *byte = *input_.data();
    header_crc_ = crc32_gzip_refl(header_crc_, byte, 1);
    input_.Consume(1);
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
    Fail(Describe(ISAL_NEED_DICT));
    return false;
  }

  // Inflates into `out` until it is full, the piece of input is used up or the member ends.
  size_t Inflate(absl::Span<uint8_t> out) {
    error_ = input_.Ensure(1);
    if (!error_.ok()) return 0;
    const size_t in_bytes = input_.size();
    const size_t out_bytes = std::min(out.size(), size_t{1} << 30);
    state_.next_in = const_cast<uint8_t*>(input_.data());
    state_.avail_in = static_cast<uint32_t>(in_bytes);
    state_.next_out = out.data();
    state_.avail_out = static_cast<uint32_t>(out_bytes);
    const int result = isal_inflate(&state_);
    const size_t produced = out_bytes - state_.avail_out;
    input_.Consume(in_bytes - state_.avail_in);
    plain_offset_ += produced;
    if (result < 0 || result == ISAL_NEED_DICT) {
      Fail(Describe(result));
    } else if (state_.block_state == ISAL_BLOCK_FINISH) {
      in_member_ = false;
      // ISA-L may have taken bytes of what follows the trailer into its bit buffer.
      input_.GiveBack(state_.read_in_length / 8);
    } else if (produced == 0 && state_.avail_in == in_bytes) {
      Fail(in_bytes == 0 ? "the file is cut: it ends inside a member" : "no progress");
    }
    return produced;
  }

  void Fail(absl::string_view why) {
    error_ = absl::DataLossError(absl::StrCat("bad ", name(), " data: ", why, " (", path(),
                                              ", compressed offset ", file_offset(),
                                              ", plain offset ", plain_offset_, ")"));
  }

  const char* name() const { return gzip_ ? "gzip" : "zlib"; }

  CompressedInput input_;
  const bool gzip_;
  inflate_state state_;
  uint32_t header_crc_ = 0;
  bool in_member_ = false;
  bool padded_ = false;  // zeros were passed over: nothing may follow them
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
