// Looks for bytes that make BmpDecoder read or write where it must not: fault 21c.
#include <cstddef>
#include <cstdint>

#include "server/codec/bmp.h"
#include "tests/fuzz/decode_image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using penstock::BmpDecoder;
  using penstock::BmpOptions;
  for (const int channels : {0, 3, 4})
    penstock::testing::DecodeSmallImage<BmpDecoder>(data, size, BmpOptions{.channels = channels});
  return 0;
}
