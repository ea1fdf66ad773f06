// Plain PNG files take a short way: it must give libpng's bytes, and leave everything unusual to
// libpng. A chunk that the short way does not know, put in front of the end, makes libpng decode
// the same file.
#include "server/codec/plain_png.h"

#include <png.h>

#include <string>
#include <vector>

#include "server/codec/png.h"
#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

using Bytes = std::vector<uint8_t>;

// A file of random smooth pixels; rows have whatever filters libpng finds best.
Bytes Encode(int height, int width, int channels, int level, int filters, size_t chunk_bytes,
             int window_bits = 15) {
  Bytes file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp target, png_bytep bytes, png_size_t count) {
        auto* const out = static_cast<Bytes*>(png_get_io_ptr(target));
        out->insert(out->end(), bytes, bytes + count);
      },
      nullptr);
  const int colours[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                         PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_IHDR(png, info, width, height, 8, colours[channels], PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_compression_level(png, level);
  // libpng makes it smaller still for small images.
  png_set_compression_window_bits(png, window_bits);
  png_set_compression_buffer_size(png, chunk_bytes);
  png_set_filter(png, PNG_FILTER_TYPE_BASE, filters);
  png_write_info(png, info);
  Bytes row(static_cast<size_t>(width * channels));
  uint32_t state = 3;
  for (int y = 0; y < height; ++y) {
    for (int i = 0; i < width * channels; ++i) {
      state = state * 1664525 + 1013904223;
      row[i] = static_cast<uint8_t>(i / channels * 3 + y * 5 + (i % channels) * 40 +
                                    static_cast<int>(state >> 28));
    }
    png_write_row(png, row.data());
  }
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

// With a chunk in front of the end that libpng alone knows: the time 2000-01-01.
Bytes ForLibpng(const Bytes& file) {
  const Bytes time = {0, 0, 0, 7, 't', 'I',  'M',  'E',  0x07, 0xd0,
                      1, 1, 0, 0, 0,   0x5b, 0x36, 0xf8, 0x5a};
  if (file.size() < 12) return file;
  Bytes changed(file.begin(), file.end() - 12);
  changed.insert(changed.end(), time.begin(), time.end());
  changed.insert(changed.end(), file.end() - 12, file.end());
  return changed;
}

struct Decoded {
  bool ok = false;
  Bytes pixels;
};

Decoded Decode(const Bytes& file, int channels) {
  const Bytes exact(file);
  PngDecoder decoder;
  const auto shape = decoder.Start(exact.data(), exact.size(), {.channels = channels});
  if (!shape.ok()) return {};
  Decoded decoded{true, Bytes(shape->bytes())};
  decoded.ok = decoder.Decode(decoded.pixels.data()).ok();
  if (!decoded.ok) decoded.pixels.clear();
  return decoded;
}

bool IsPlain(const Bytes& file, int height, int width, int channels) {
  Bytes pixels(static_cast<size_t>(height * width * channels));
  return DecodePlainPng(file.data(), file.size(), height, static_cast<size_t>(width * channels),
                        channels, pixels.data());
}

TEST_CASE("The short way gives libpng's pixels") {
  for (int channels = 1; channels <= 4; ++channels) {
    for (const int filters : {PNG_ALL_FILTERS, PNG_FILTER_NONE, PNG_FILTER_SUB, PNG_FILTER_UP,
                              PNG_FILTER_AVG, PNG_FILTER_PAETH}) {
      for (const auto& [height, width] :
           {std::pair(1, 1), std::pair(67, 41), std::pair(130, 200)}) {
        for (const int level : {0, 1, 9}) {
          const size_t chunk_bytes = level == 1 ? 100 : 8192;
          CAPTURE(channels, filters, height, width, level);
          const Bytes file = Encode(height, width, channels, level, filters, chunk_bytes);
          CHECK(IsPlain(file, height, width, channels));
          const Bytes other = ForLibpng(file);
          CHECK_FALSE(IsPlain(other, height, width, channels));
          const Decoded plain = Decode(file, 0), libpng = Decode(other, 0);
          CHECK(plain.ok);
          CHECK(libpng.ok);
          CHECK((plain.pixels == libpng.pixels));
          // Other numbers of channels are libpng's.
          if (channels == 4) CHECK((Decode(file, 3).pixels == Decode(other, 3).pixels));
        }
      }
    }
  }
}

TEST_CASE("A window that is smaller than the image is left to libpng") {
  for (const int window_bits : {9, 12, 14, 15}) {
    CAPTURE(window_bits);
    const Bytes file = Encode(130, 200, 3, 6, PNG_ALL_FILTERS, 8192, window_bits);
    CHECK(IsPlain(file, 130, 200, 3) == (window_bits == 15));
    CHECK((Decode(file, 0).pixels == Decode(ForLibpng(file), 0).pixels));
  }
}

TEST_CASE("fault 21: What is damaged has libpng's verdict, wherever the damage is") {
  // The second has a window of its own size.
  const auto [height, width] = GENERATE(std::pair(110, 100), std::pair(40, 30));
  const Bytes file = Encode(height, width, 3, 6, PNG_ALL_FILTERS, 900);
  REQUIRE(IsPlain(file, height, width, 3));
  int refused = 0, accepted = 0;
  for (size_t place = 8; place < file.size(); place += place < 1100 ? 3 : 53) {
    for (const uint8_t change : {0x01, 0x80, 0x20}) {
      Bytes hurt = file;
      hurt[place] ^= change;
      CAPTURE(place, int{change});
      const Decoded plain = Decode(hurt, 0), libpng = Decode(ForLibpng(hurt), 0);
      // The end itself has no place in front of it.
      if (place + 12 >= file.size()) continue;
      CHECK(plain.ok == libpng.ok);
      CHECK((plain.pixels == libpng.pixels));
      ++(plain.ok ? accepted : refused);
    }
  }
  CHECK(refused > 100);
  for (size_t size = 8; size < file.size(); size += 97) {
    CHECK_FALSE(Decode(Bytes(file.begin(), file.begin() + static_cast<int64_t>(size)), 0).ok);
  }
}

}  // namespace
}  // namespace penstock::testing
