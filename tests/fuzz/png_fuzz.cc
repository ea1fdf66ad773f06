// Looks for bytes that make PngDecoder read or write where it must not: fault 21.
#include <cstddef>
#include <cstdint>

#include "server/codec/png.h"
#include "tests/fuzz/decode_image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using penstock::PngDecoder;
  using penstock::PngOptions;
  for (const int channels : {0, 1, 3, 4})
    penstock::testing::DecodeSmallImage<PngDecoder>(data, size, PngOptions{.channels = channels});
  return 0;
}
