// Looks for bytes that make JpegDecoder read or write where it must not: fault 20.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/codec/jpeg.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kBytesMax = size_t{4} << 20;
  penstock::JpegDecoder decoder;
  penstock::JpegOptions options;
  // The data tells the options too.
  const uint8_t choice = size < 5 ? 0 : data[size - 5];
  options.recover_truncated = (choice & 1) != 0;
  options.upright = (choice & 2) != 0;
  options.channels = (choice & 4) != 0 ? 3 : 0;
  options.ratio = (choice & 8) != 0 ? 4 : 1;
  const auto shape = decoder.Start(data, size, options);
  if (!shape.ok() || shape->bytes() > kBytesMax) return 0;
  std::vector<uint8_t> pixels(shape->bytes());
  (void)decoder.Decode(pixels.data());
  // A window whose place the data tells.
  if (size < 4 || !decoder.Start(data, size, options).ok()) return 0;
  penstock::JpegWindow window;
  window.top = data[size - 1] % shape->height;
  window.left = data[size - 2] % shape->width;
  window.height = 1 + data[size - 3] % (shape->height - window.top);
  window.width = 1 + data[size - 4] % (shape->width - window.left);
  (void)decoder.DecodeWindow(window, pixels.data());
  return 0;
}
