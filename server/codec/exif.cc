#include "server/codec/exif.h"

#include <cstring>

#include "base/byte_order.h"

namespace penstock {
namespace {

constexpr int kUpright = 1;

// A TIFF file's numbers, in its byte order; 0 beyond its end.
struct Tiff {
  const uint8_t* data;
  size_t size;
  bool little;

  uint32_t Number(size_t offset, size_t bytes) const {
    if (offset > size || size - offset < bytes) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; ++i) {
      value = value << 8 | data[offset + (little ? bytes - 1 - i : i)];
    }
    return value;
  }
};

int OrientationOf(const uint8_t* data, size_t size) {
  constexpr size_t kEntryBytes = 12;
  constexpr uint32_t kOrientationTag = 0x0112, kShort = 3;
  if (size < 8) return kUpright;
  const bool little = data[0] == 'I' && data[1] == 'I';
  if (!little && !(data[0] == 'M' && data[1] == 'M')) return kUpright;
  const Tiff tiff{data, size, little};
  if (tiff.Number(2, 2) != 42) return kUpright;
  const size_t directory = tiff.Number(4, 4);
  const size_t entries = tiff.Number(directory, 2);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (entry > size || size - entry < kEntryBytes) break;
    if (tiff.Number(entry, 2) != kOrientationTag) continue;
    const uint32_t value = tiff.Number(entry + 8, 2);
    const bool sound = tiff.Number(entry + 2, 2) == kShort && value >= 1 && value <= 8;
    return sound ? static_cast<int>(value) : kUpright;
  }
  return kUpright;
}

}  // namespace

int JpegOrientation(const uint8_t* data, size_t size) {
  static constexpr uint8_t kExif[] = {'E', 'x', 'i', 'f', 0, 0};
  size_t at = 2;
  while (size >= 4 && at <= size - 4) {
    if (data[at] != 0xff) return kUpright;
    const uint8_t marker = data[at + 1];
    if (marker == 0xff) {  // a fill byte
      ++at;
      continue;
    }
    // The first scan, or the end.
    if (marker == 0xda || marker == 0xd9) return kUpright;
    const size_t length = LoadBig<uint16_t>(&data[at + 2]);
    if (length < 2 || length > size - at - 2) return kUpright;
    const uint8_t* const body = data + at + 4;
    const size_t bytes = length - 2;
    if (marker == 0xe1 && bytes >= sizeof(kExif) && std::memcmp(body, kExif, sizeof(kExif)) == 0) {
      return OrientationOf(body + sizeof(kExif), bytes - sizeof(kExif));
    }
    at += 2 + length;
  }
  return kUpright;
}

void TurnUpright(int orientation, const uint8_t* in, int height, int width, int channels,
                 uint8_t* out) {
  // Where row 0 and column 0 of the file are on the upright image: 2 top right, 3 bottom right, 4
  // bottom left, 5 left top, 6 right top, 7 right bottom, 8 left bottom.
  const bool swapped = OrientationSwapsSides(orientation);
  const int out_height = swapped ? width : height;
  const int out_width = swapped ? height : width;
  const bool from_bottom =
      orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const auto pixel_bytes = static_cast<size_t>(channels);
  for (int y = 0; y < out_height; ++y) {
    const int up = from_bottom ? out_height - 1 - y : y;
    for (int x = 0; x < out_width; ++x, out += pixel_bytes) {
      const int across = from_right ? out_width - 1 - x : x;
      const int row = swapped ? across : up;
      const int column = swapped ? up : across;
      std::memcpy(out, in + (static_cast<size_t>(row) * width + column) * pixel_bytes, pixel_bytes);
    }
  }
}

}  // namespace penstock
