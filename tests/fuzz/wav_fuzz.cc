// Looks for bytes that make WavDecoder read or write where it must not: fault 21c.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/codec/wav.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  penstock::WavDecoder decoder;
  const auto shape = decoder.Start(data, size);
  if (!shape.ok()) return 0;
  // As it is, and with fewer and more of everything.
  for (const int64_t more : {0, -1, 2}) {
    const int64_t samples = std::max<int64_t>(0, shape->samples + more);
    const int64_t channels = std::max<int64_t>(1, shape->channels + more);
    std::vector<float> out(static_cast<size_t>(samples * channels));
    decoder.Decode(samples, channels, out.data());
  }
  return 0;
}
