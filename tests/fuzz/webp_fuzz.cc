// Looks for bytes that make WebpDecoder read or write where it must not: fault 21b.
#include <cstddef>
#include <cstdint>

#include "server/codec/webp.h"
#include "tests/fuzz/decode_image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using penstock::WebpDecoder;
  using penstock::WebpOptions;
  for (const bool first_frame_only : {false, true})
    penstock::testing::DecodeSmallImage<WebpDecoder>(
        data, size, WebpOptions{.first_frame_only = first_frame_only});
  return 0;
}
