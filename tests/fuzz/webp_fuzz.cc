// Looks for bytes that make WebpDecoder read or write where it must not: fault 21b.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/codec/webp.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kBytesMax = size_t{4} << 20;
  for (const bool first_frame_only : {false, true}) {
    penstock::WebpDecoder decoder;
    const auto shape = decoder.Start(data, size, {.first_frame_only = first_frame_only});
    if (!shape.ok() || shape->bytes() > kBytesMax) return 0;
    std::vector<uint8_t> pixels(shape->bytes());
    (void)decoder.Decode(pixels.data());
  }
  return 0;
}
