#include "server/codec/inflate.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"

namespace penstock {

absl::StatusOr<std::string> Inflate(const uint8_t* data, size_t size, Wrapping wrapping) {
  const auto state = std::make_unique<inflate_state>();
  std::string out;
  size_t done = 0, taken = 0;
  do {
    isal_inflate_init(state.get());
    state->crc_flag = wrapping == Wrapping::kGzip ? ISAL_GZIP : ISAL_ZLIB;
    state->next_in = const_cast<uint8_t*>(data + taken);
    state->avail_in = static_cast<uint32_t>(std::min<size_t>(size - taken, UINT32_MAX));
    while (true) {
      if (done == out.size()) {
        if (done >= kInflatedBytesMax) {
          return absl::ResourceExhaustedError(
              absl::StrCat("expected at most ", kInflatedBytesMax, " bytes inflated, found more"));
        }
        out.resize(std::min(std::max<size_t>({size_t{4096}, out.size() * 2, size * 2}),
                            kInflatedBytesMax));
      }
      const size_t room = out.size() - done;
      state->next_out = reinterpret_cast<uint8_t*>(out.data()) + done;
      state->avail_out = static_cast<uint32_t>(room);
      const uint32_t before = state->avail_in;
      const int result = isal_inflate(state.get());
      done += room - state->avail_out;
      if (result != ISAL_DECOMP_OK) {
        return absl::DataLossError(absl::StrCat(
            "expected ", wrapping == Wrapping::kGzip ? "gzip" : "zlib",
            ", found malformed bytes (byte ", size - state->avail_in, " of the string)"));
      }
      if (state->block_state == ISAL_BLOCK_FINISH) break;
      if (state->avail_in == 0 && before == 0 && state->avail_out == room) {
        return absl::DataLossError(absl::StrCat(
            "expected the end of the compressed data, found that of the string (byte ", size, ")"));
      }
    }
    // ISA-L may have taken bytes of what follows the trailer into its bit buffer.
    taken = size - state->avail_in - static_cast<size_t>(state->read_in_length) / 8;
  } while (taken < size);
  out.resize(done);
  return out;
}

}  // namespace penstock
