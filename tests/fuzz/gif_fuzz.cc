// Looks for bytes that make GifDecoder read or write where it must not: fault 21a.
#include <cstddef>
#include <cstdint>

#include "server/codec/gif.h"
#include "tests/fuzz/decode_image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using penstock::GifDecoder;
  using penstock::GifOptions;
  for (const bool first_frame_only : {false, true})
    penstock::testing::DecodeSmallImage<GifDecoder>(
        data, size, GifOptions{.first_frame_only = first_frame_only});
  return 0;
}
