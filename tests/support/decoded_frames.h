// An image with several frames through its decoder, between guards.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/codec/frames_shape.h"
#include "tests/support/catch.h"

namespace penstock::testing {

// The pixels of the file, whose shape goes into *shape. A Decoder has Start(), which reads the
// header, and Decode().
template <typename Decoder, typename Options>
absl::StatusOr<std::vector<uint8_t>> DecodeFrames(const std::string& file, const Options& options,
                                                  FramesShape* shape) {
  // Of exactly the file's size, so that a sanitizer sees what is read behind it.
  const std::vector<uint8_t> bytes(file.begin(), file.end());
  Decoder decoder;
  const absl::StatusOr<FramesShape> started = decoder.Start(bytes.data(), bytes.size(), options);
  if (!started.ok()) return started.status();
  *shape = *started;
  // What lies behind the pixels stays as it is.
  std::vector<uint8_t> pixels(shape->bytes() + 256, 0x77);
  if (absl::Status status = decoder.Decode(pixels.data()); !status.ok()) return status;
  CHECK(std::count(pixels.end() - 256, pixels.end(), 0x77) == 256);
  pixels.resize(shape->bytes());
  return pixels;
}

}  // namespace penstock::testing
