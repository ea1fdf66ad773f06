// Looks for bytes that make GifDecoder read or write where it must not: fault 21a.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/codec/gif.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kBytesMax = size_t{4} << 20;
  for (const bool first_frame_only : {false, true}) {
    penstock::GifDecoder decoder;
    const auto shape = decoder.Start(data, size, {.first_frame_only = first_frame_only});
    if (!shape.ok() || shape->bytes() > kBytesMax) return 0;
    std::vector<uint8_t> pixels(shape->bytes());
    (void)decoder.Decode(pixels.data());
  }
  return 0;
}
