// Parts of JPEG images are those of the whole, whatever the subsampling of chroma and wherever they
// lie.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "server/codec/jpeg.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

// Behind <cstdio>, whose names it needs.
#include <jpeglib.h>

namespace penstock::testing {
namespace {

struct Encoding {
  int horizontal;  // samples of luminance to one of chroma
  int vertical;
  bool progressive;
  int restart_rows;
  bool grey;
};

std::string Encode(int height, int width, const Encoding& encoding) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;  // NOLINT: libjpeg's type
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = width;
  info.image_height = height;
  info.input_components = encoding.grey ? 1 : 3;
  info.in_color_space = encoding.grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 85, TRUE);
  if (!encoding.grey) {
    info.comp_info[0].h_samp_factor = encoding.horizontal;
    info.comp_info[0].v_samp_factor = encoding.vertical;
  }
  info.restart_in_rows = encoding.restart_rows;
  if (encoding.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  std::vector<uint8_t> row(static_cast<size_t>(width * info.input_components));
  uint32_t state = 5;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < info.input_components; ++c) {
        state = state * 1664525 + 1013904223;
        const double wave = 90 * std::sin((x + 3 * c) / 7.0) * std::cos((y - 5 * c) / 9.0);
        row[static_cast<size_t>(x * info.input_components + c)] =
            static_cast<uint8_t>(128 + wave + static_cast<int>(state >> 27));
      }
    }
    JSAMPROW rows[] = {row.data()};
    jpeg_write_scanlines(&info, rows, 1);
  }
  jpeg_finish_compress(&info);
  std::string result(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return result;
}

std::vector<uint8_t> CutOf(const std::vector<uint8_t>& image, const JpegShape& shape,
                           const JpegWindow& window) {
  std::vector<uint8_t> cut;
  for (int y = 0; y < window.height; ++y) {
    const auto first =
        image.begin() + ((window.top + y) * shape.width + window.left) * shape.channels;
    cut.insert(cut.end(), first, first + window.width * shape.channels);
  }
  return cut;
}

// Compares windows of many places and sizes.
void CheckWindows(const std::string& jpeg, const JpegOptions& options) {
  const std::vector<uint8_t> data(jpeg.begin(), jpeg.end());
  JpegDecoder decoder;
  const auto shape = decoder.Start(data.data(), data.size(), options);
  REQUIRE(shape.ok());
  std::vector<uint8_t> image(shape->bytes());
  REQUIRE(decoder.Decode(image.data()).ok());
  uint32_t state = 11;
  const auto draw = [&state](int bound) {
    state = state * 1664525 + 1013904223;
    return static_cast<int>(uint64_t{state} * static_cast<uint64_t>(bound) >> 32);
  };
  std::vector<JpegWindow> windows = {{0, 0, 1, 1},
                                     {shape->height - 1, shape->width - 1, 1, 1},
                                     {0, 0, shape->height, shape->width},
                                     {0, 0, shape->height, 1},
                                     {shape->height - 1, 0, 1, shape->width}};
  for (int i = 0; i < 40; ++i) {
    JpegWindow window;
    window.height = 1 + draw(shape->height);
    window.width = 1 + draw(shape->width);
    if (i % 2 == 0) {
      window.height = std::min(window.height, 1 + draw(20));
      window.width = std::min(window.width, 1 + draw(20));
    }
    window.top = draw(shape->height - window.height + 1);
    window.left = draw(shape->width - window.width + 1);
    windows.push_back(window);
  }
  for (const JpegWindow& window : windows) {
    CAPTURE(window.top, window.left, window.height, window.width);
    REQUIRE(decoder.Start(data.data(), data.size(), options).ok());
    const size_t bytes = size_t{1} * window.height * window.width * shape->channels;
    std::vector<uint8_t> part(bytes);
    REQUIRE(decoder.DecodeWindow(window, part.data()).ok());
    const bool same = part == CutOf(image, *shape, window);  // without the pixels in the message
    CHECK(same);
  }
}

// The image read `at_once` rows at a time, up to an error.
absl::Status ReadByRows(JpegDecoder& decoder, const JpegShape& shape, int at_once,
                        uint8_t* pixels) {
  const size_t row_bytes = size_t{1} * shape.width * shape.channels;
  for (int row = 0; row < shape.height; row += at_once) {
    const int count = std::min(at_once, shape.height - row);
    if (absl::Status status = decoder.ReadRows(count, pixels + row * row_bytes); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

// Compares rows a few at a time with the whole image, and the verdicts on both. Returns that on the
// whole.
absl::Status CheckRows(const std::string& jpeg, const JpegOptions& options) {
  const std::vector<uint8_t> data(jpeg.begin(), jpeg.end());
  JpegDecoder decoder;
  const auto shape = decoder.Start(data.data(), data.size(), options);
  if (!shape.ok()) return shape.status();
  std::vector<uint8_t> image(shape->bytes());
  const absl::Status verdict = decoder.Decode(image.data());
  for (const int at_once : {1, 3, 8, shape->height}) {
    CAPTURE(at_once);
    REQUIRE(decoder.Start(data.data(), data.size(), options).ok());
    REQUIRE(decoder.has_rows());
    std::vector<uint8_t> rows(shape->bytes());
    CHECK(ReadByRows(decoder, *shape, at_once, rows.data()) == verdict);
    const bool same = !verdict.ok() || rows == image;  // without the pixels in the message
    CHECK(same);
  }
  return verdict;
}

TEST_CASE("Rows of a JPEG image a few at a time are those of the whole") {
  for (const Encoding& encoding :
       {Encoding{1, 1, false, 0, false}, Encoding{2, 1, false, 0, false},
        Encoding{1, 2, false, 0, false}, Encoding{2, 2, false, 0, false},
        Encoding{4, 2, false, 0, false}, Encoding{2, 2, true, 0, false},
        Encoding{2, 2, false, 1, false}, Encoding{1, 1, true, 0, true}}) {
    for (const auto& [height, width] :
         {std::pair(137, 211), std::pair(96, 64), std::pair(17, 33), std::pair(1, 1)}) {
      const std::string jpeg = Encode(height, width, encoding);
      for (const bool fancy : {true, false}) {
        for (const int ratio : {1, 2, 8}) {
          CAPTURE(encoding.horizontal, encoding.vertical, encoding.progressive,
                  encoding.restart_rows, encoding.grey, height, width, fancy, ratio);
          CHECK(CheckRows(jpeg, {.ratio = ratio, .fancy_upscaling = fancy}).ok());
        }
      }
    }
  }
}

TEST_CASE("Rows of an image that is cut have the verdict of the whole, at every place") {
  const std::string jpeg = Encode(40, 50, {2, 2, false, 0, false});
  for (size_t size = 1; size < jpeg.size(); ++size) {
    CAPTURE(size);
    CHECK(!CheckRows(jpeg.substr(0, size), {}).ok());
    (void)CheckRows(jpeg.substr(0, size), {.recover_truncated = true});
    std::string damaged = jpeg;
    damaged[size] = static_cast<char>(~damaged[size]);
    (void)CheckRows(damaged, {});
  }
}

TEST_CASE("Inks and images that are turned have no rows") {
  const auto has_rows = [](const char* file, const JpegOptions& options) {
    const std::string jpeg = ReadGolden(std::string("images/") + file);
    JpegDecoder decoder;
    REQUIRE(
        decoder.Start(reinterpret_cast<const uint8_t*>(jpeg.data()), jpeg.size(), options).ok());
    return decoder.has_rows();
  };
  CHECK(!has_rows("cmyk.jpg", {}));
  CHECK(!has_rows("rgb_exif_rotated.jpg", {.upright = true}));
  CHECK(has_rows("rgb_exif_rotated.jpg", {}));
  CHECK(has_rows("grey.jpg", {}));
}

TEST_CASE("A part of a JPEG image is that part of the whole") {
  for (const Encoding& encoding : {Encoding{1, 1, false, 0, false}, Encoding{2, 1, false, 0, false},
                                   Encoding{1, 2, false, 0, false}, Encoding{2, 2, false, 0, false},
                                   Encoding{4, 1, false, 0, false}, Encoding{4, 2, false, 0, false},
                                   Encoding{2, 2, true, 0, false}, Encoding{1, 1, true, 0, false},
                                   Encoding{2, 2, false, 1, false}, Encoding{2, 1, false, 2, false},
                                   Encoding{1, 1, false, 0, true}, Encoding{1, 1, true, 0, true}}) {
    for (const auto& [height, width] :
         {std::pair(137, 211), std::pair(96, 64), std::pair(17, 33)}) {
      const std::string jpeg = Encode(height, width, encoding);
      for (const bool fancy : {true, false}) {
        for (const int channels : {0, 1, 3}) {
          CAPTURE(encoding.horizontal, encoding.vertical, encoding.progressive,
                  encoding.restart_rows, encoding.grey, height, width, fancy, channels);
          CheckWindows(
              jpeg, {.channels = channels, .fancy_upscaling = fancy, .accurate_dct = height == 96});
        }
      }
    }
  }
}

TEST_CASE("Parts of images of other kinds are cut from the whole") {
  for (const char* const file : {"cmyk.jpg", "rgb_photo.jpg", "rgb_420_odd.jpg", "rgb_tiny.jpg"}) {
    const std::string jpeg = ReadGolden(std::string("images/") + file);
    for (const int ratio : {1, 2, 8}) {
      CAPTURE(file, ratio);
      CheckWindows(jpeg, {.channels = 3, .ratio = ratio});
    }
  }
}

TEST_CASE("A part of a progressive image that lacks scans is what the whole has there") {
  // libjpeg smooths such images over their blocks.
  const std::string jpeg = Encode(100, 140, {2, 2, true, 0, false});
  std::vector<size_t> scans;
  for (size_t at = jpeg.find("\xff\xda"); at != std::string::npos;
       at = jpeg.find("\xff\xda", at + 2))
    scans.push_back(at);
  REQUIRE(scans.size() > 4);
  for (const size_t kept : {scans.size() - 1, scans.size() / 2, size_t{1}}) {
    CAPTURE(kept);
    CheckWindows(jpeg.substr(0, scans[kept]) + "\xff\xd9", {.channels = 3});
  }
}

TEST_CASE("A part of an image stays where what lies below it is damaged") {
  const std::string jpeg = Encode(200, 300, {2, 2, false, 0, false});
  const auto decode = [](const std::string& file, const JpegWindow& window) {
    JpegDecoder decoder;
    const auto* const data = reinterpret_cast<const uint8_t*>(file.data());
    REQUIRE(decoder.Start(data, file.size(), {}).ok());
    std::vector<uint8_t> pixels(static_cast<size_t>(window.height * window.width) * 3);
    const absl::Status status = decoder.DecodeWindow(window, pixels.data());
    return std::pair(status, pixels);
  };
  // A second header of a frame in the last part of the scan.
  std::string damaged = jpeg;
  damaged.insert(jpeg.size() * 4 / 5, "\xff\xc0");
  CHECK(absl::IsDataLoss(decode(damaged, {0, 0, 200, 300}).first));
  const JpegWindow part = {8, 16, 40, 50};
  const auto [status, pixels] = decode(damaged, part);
  CHECK(status == absl::OkStatus());
  CHECK((pixels == decode(jpeg, part).second));
}

TEST_CASE("A part of an image that is cut has the verdict of the whole") {
  const std::string jpeg = Encode(200, 300, {2, 2, false, 0, false});
  for (const double part : {0.2, 0.5, 0.99}) {
    const std::string cut =
        jpeg.substr(0, static_cast<size_t>(part * static_cast<double>(jpeg.size())));
    JpegDecoder decoder;
    const auto* const data = reinterpret_cast<const uint8_t*>(cut.data());
    const auto shape = decoder.Start(data, cut.size(), {});
    REQUIRE(shape.ok());
    std::vector<uint8_t> pixels(shape->bytes());
    const absl::Status whole = decoder.Decode(pixels.data());
    REQUIRE_FALSE(whole.ok());
    REQUIRE(decoder.Start(data, cut.size(), {}).ok());
    CHECK(decoder.DecodeWindow({0, 0, 8, 8}, pixels.data()) == whole);
  }
  // Cut behind a preview, which has an end marker of its own.
  const std::string preview = Encode(20, 30, {2, 2, false, 0, false});
  std::string segment = "\xff\xe1";
  segment += static_cast<char>((preview.size() + 2) >> 8);
  segment += static_cast<char>(preview.size() + 2);
  std::string both = jpeg.substr(0, 2) + segment + preview + jpeg.substr(2);
  both.resize(both.size() - 2);
  JpegDecoder decoder;
  const auto* const data = reinterpret_cast<const uint8_t*>(both.data());
  REQUIRE(decoder.Start(data, both.size(), {}).ok());
  std::vector<uint8_t> pixels(64 * 3);
  CHECK_FALSE(decoder.DecodeWindow({0, 0, 8, 8}, pixels.data()).ok());
}

}  // namespace
}  // namespace penstock::testing
