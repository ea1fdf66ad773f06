#include "server/codec/inflate.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"

namespace penstock {
namespace {

// At most so much is inflated between two looks for a stop.
constexpr size_t kBytesAtOnce = size_t{4} << 20;

// Whether a member begins so. Of bytes that are too few to tell, what is there must agree.
bool BeginsAsMember(const uint8_t* data, size_t size, Wrapping wrapping) {
  if (wrapping == Wrapping::kGzip) {
    static constexpr uint8_t kMagic[] = {0x1f, 0x8b, 8};
    return std::equal(data, data + std::min<size_t>(size, sizeof(kMagic)), kMagic);
  }
  return (data[0] & 0x0f) == 8 && data[0] >> 4 <= 7 &&
         (size < 2 || (data[0] << 8 | data[1]) % 31 == 0);
}

const char* Name(Wrapping wrapping) { return wrapping == Wrapping::kGzip ? "gzip" : "zlib"; }

}  // namespace

absl::StatusOr<std::string> Inflate(const uint8_t* data, size_t size, Wrapping wrapping,
                                    LargeCharge& charge) {
  const auto state = std::make_unique<inflate_state>();
  std::string out;
  size_t done = 0, taken = 0;
  do {
    isal_inflate_init(state.get());
    state->crc_flag = wrapping == Wrapping::kGzip ? ISAL_GZIP : ISAL_ZLIB;
    state->next_in = const_cast<uint8_t*>(data + taken);
    state->avail_in = static_cast<uint32_t>(std::min<size_t>(size - taken, UINT32_MAX));
    while (true) {
      CheckStop();
      if (done == out.size()) {
        if (done >= kInflatedBytesMax) {
          return absl::ResourceExhaustedError(
              absl::StrCat("expected at most ", kInflatedBytesMax, " bytes inflated, found more"));
        }
        const size_t bytes =
            std::min(std::max<size_t>({size_t{4096}, out.size() * 2, size * 2}), kInflatedBytesMax);
        charge.MakeRoom(out, bytes - out.size());
        out.resize(bytes);
      }
      const size_t room = std::min(out.size() - done, kBytesAtOnce);
      state->next_out = reinterpret_cast<uint8_t*>(out.data()) + done;
      state->avail_out = static_cast<uint32_t>(room);
      const uint32_t before = state->avail_in;
      const int result = isal_inflate(state.get());
      done += room - state->avail_out;
      if (result != ISAL_DECOMP_OK) {
        return absl::DataLossError(absl::StrCat("expected ", Name(wrapping),
                                                ", found malformed bytes (byte ",
                                                size - state->avail_in, " of the string)"));
      }
      if (state->block_state == ISAL_BLOCK_FINISH) break;
      if (state->avail_in == 0 && before == 0 && state->avail_out == room) {
        return absl::DataLossError(absl::StrCat(
            "expected the end of the compressed data, found that of the string (byte ", size, ")"));
      }
    }
    // ISA-L may have taken bytes of what follows the trailer into its bit buffer.
    taken = size - state->avail_in - static_cast<size_t>(state->read_in_length) / 8;
    if (taken < size && !BeginsAsMember(data + taken, size - taken, wrapping)) {
      return absl::DataLossError(absl::StrCat("expected the end of the string behind its ",
                                              Name(wrapping), " data, found ", size - taken,
                                              " more bytes (byte ", taken, " of ", size, ")"));
    }
  } while (taken < size);
  out.resize(done);
  return out;
}

}  // namespace penstock
