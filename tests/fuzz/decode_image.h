// What the fuzz targets of the image decoders share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::testing {

// Decodes the data if it tells of an image of a few megabytes. A Decoder has Start(), which reads
// the header, and Decode().
template <typename Decoder, typename Options>
void DecodeSmallImage(const uint8_t* data, size_t size, const Options& options) {
  constexpr size_t kBytesMax = size_t{4} << 20;
  Decoder decoder;
  const auto shape = decoder.Start(data, size, options);
  if (!shape.ok() || shape->bytes() > kBytesMax) return;
  std::vector<uint8_t> pixels(shape->bytes());
  (void)decoder.Decode(pixels.data());
}

}  // namespace penstock::testing
