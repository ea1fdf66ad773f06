#include "server/io/deflate_stream.h"

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
    isal_inflate_reset(&state_);
    state_.crc_flag = gzip_ ? ISAL_GZIP : ISAL_ZLIB;
    in_member_ = true;
    ++num_members_;
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
