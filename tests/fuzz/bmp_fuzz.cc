// Looks for bytes that make BmpDecoder read or write where it must not: fault 21c.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/codec/bmp.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kBytesMax = size_t{4} << 20;
  for (const int channels : {0, 3, 4}) {
    penstock::BmpDecoder decoder;
    const auto shape = decoder.Start(data, size, {.channels = channels});
    if (!shape.ok() || shape->bytes() > kBytesMax) continue;
    std::vector<uint8_t> pixels(shape->bytes());
    (void)decoder.Decode(pixels.data());
  }
  return 0;
}
