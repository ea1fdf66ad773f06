// WebpDecoder: its limits, and animations without alpha, for which TensorFlow writes past its
// tensor. TensorFlow's own pixels and verdicts are compared by tests/client/python_parsing_test.py.
#include "server/codec/webp.h"

#include <webp/demux.h>
#include <webp/encode.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/in_pieces.h"
#include "base/memory_account.h"
#include "server/codec/webp_frames.h"
#include "tests/support/catch.h"
#include "tests/support/decoded_frames.h"
#include "tests/support/golden.h"
#include "tests/support/stop_at_touch.h"
#include "tests/support/stops_soon.h"

namespace penstock::testing {
namespace {

std::string LittleEndian(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

std::string Chunk(const std::string& name, const std::string& data) {
  return name + LittleEndian(static_cast<uint32_t>(data.size()), 4) + data +
         std::string(data.size() % 2, '\0');
}

std::string File(const std::string& chunks) {
  return "RIFF" + LittleEndian(static_cast<uint32_t>(chunks.size() + 4), 4) + "WEBP" + chunks;
}

std::string Sides(uint32_t width, uint32_t height) {
  return LittleEndian(width - 1, 3) + LittleEndian(height - 1, 3);
}

// The image data of a lossless image of one chunk.
std::string Bits(const std::string& name) {
  const std::string file = ReadGolden("images/" + name);
  return file.substr(12);
}

// An animation without alpha.
std::string Frames(uint32_t width, uint32_t height, size_t count) {
  std::string chunks = Chunk("VP8X", LittleEndian(2, 4) + Sides(width, height)) +
                       Chunk("ANIM", std::string(6, '\0'));
  const std::string frame = Chunk(
      "ANMF", LittleEndian(0, 6) + Sides(9, 8) + std::string(4, '\0') + Bits("lossless.webp"));
  for (size_t i = 0; i < count; ++i) chunks += frame;
  return File(chunks);
}

constexpr auto* Decode = &DecodeFrames<WebpDecoder, WebpOptions>;

TEST_CASE("webp: an animation without alpha has three channels") {
  FramesShape still, shape;
  const auto image = Decode(ReadGolden("images/lossless.webp"), {}, &still);
  REQUIRE(image.ok());
  std::vector<uint8_t> twice = *image;
  twice.insert(twice.end(), image->begin(), image->end());
  for (const int channels : {0, 3}) {
    const auto pixels = Decode(Frames(9, 8, 2), {.channels = channels}, &shape);
    REQUIRE(pixels.ok());
    CHECK(shape.frames == 2);
    CHECK(shape.channels == 3);
    CHECK(*pixels == twice);
    const auto first =
        Decode(Frames(9, 8, 2), {.channels = channels, .first_frame_only = true}, &shape);
    REQUIRE(first.ok());
    CHECK(shape.frames == 1);
    CHECK(*first == *image);
  }
  CHECK(Decode(Frames(9, 8, 2), {.channels = 4}, &shape).status().message() ==
        "WebP image has 3 channels, not 4");
  // What the frame does not cover is black.
  const auto wide = Decode(Frames(10, 8, 1), {}, &shape);
  REQUIRE(wide.ok());
  CHECK(std::vector<uint8_t>(wide->begin() + 27, wide->begin() + 30) ==
        std::vector<uint8_t>{0, 0, 0});
}

TEST_CASE("fault 21b: webp: every cut of a file") {
  for (const std::string& file : {ReadGolden("images/lossy_alpha.webp"),
                                  ReadGolden("images/lossless.webp"), Frames(9, 8, 2)}) {
    for (size_t size = 0; size < file.size(); ++size) {
      CAPTURE(size);
      FramesShape shape;
      const absl::Status status = Decode(file.substr(0, size), {}, &shape).status();
      CHECK(status.code() == absl::StatusCode::kDataLoss);
      CHECK_THAT(std::string(status.message()),
                 Catch::StartsWith(size < 13 ? "no WebP image by its first bytes"
                                             : "WebP data is damaged: "));
    }
  }
}

// What both give: the pixels or what is wrong.
void CompareInPieces(const std::string& file) {
  FramesShape shape;
  const auto at_once = Decode(file, {.pixels_at_once = INT64_MAX}, &shape);
  const auto in_pieces = Decode(file, {.pixels_at_once = 0}, &shape);
  REQUIRE(at_once.status() == in_pieces.status());
  // Not inside of a macro, which would write the pixels down.
  const bool is_same = !at_once.ok() || *at_once == *in_pieces;
  REQUIRE(is_same);
}

constexpr const char* kStills[] = {
    "lossless.webp",     "lossless_alpha.webp", "lossless_large.webp",
    "lossy.webp",        "lossy_alpha.webp",    "lossy_alpha_large.webp",
    "lossy_coarse.webp", "lossy_large.webp",    "notes.webp"};

TEST_CASE("fault 21b: webp: in pieces and at once, an image is the same") {
  for (const char* const name : kStills) {
    CAPTURE(name);
    const std::string file = ReadGolden(std::string("images/") + name);
    CompareInPieces(file);
    CompareInPieces(file + std::string(1000, 'x'));
    // Cut, with and without a length that says so.
    for (size_t size = 13; size < file.size(); size += 1 + file.size() / 500) {
      CAPTURE(size);
      CompareInPieces(file.substr(0, size));
      const std::string chunks = file.substr(12, size - 12);
      CompareInPieces(File(chunks));
      CompareInPieces(File(chunks) + std::string(1000, 'x'));
    }
    uint64_t state = 1;
    for (int i = 0; i < 1000; ++i) {
      CAPTURE(i);
      std::string damaged = file;
      for (int flips = 1 + i % 3; flips > 0; --flips) {
        state = state * 6364136223846793005 + 1442695040888963407;
        damaged[(state >> 33) % file.size()] ^= static_cast<char>(1 << (state >> 30) % 8);
      }
      CompareInPieces(damaged);
    }
  }
}

std::string Encoded(int width, int height, bool has_alpha, bool is_lossless, int levels,
                    uint64_t state = 1) {
  const int channels = has_alpha ? 4 : 3;
  std::vector<uint8_t> pixels(static_cast<size_t>(width) * height * channels);
  for (uint8_t& value : pixels) {
    state = state * 6364136223846793005 + 1442695040888963407;
    value = static_cast<uint8_t>((state >> 33) % levels * 40);
  }
  WebPConfig config;
  WebPPicture picture;
  REQUIRE(WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, 80));
  REQUIRE(WebPPictureInit(&picture));
  config.method = 0;
  config.lossless = is_lossless ? 1 : 0;
  picture.use_argb = config.lossless;
  picture.width = width;
  picture.height = height;
  const int stride = width * channels;
  REQUIRE((has_alpha ? WebPPictureImportRGBA(&picture, pixels.data(), stride)
                     : WebPPictureImportRGB(&picture, pixels.data(), stride)));
  WebPMemoryWriter writer;
  WebPMemoryWriterInit(&writer);
  picture.writer = &WebPMemoryWrite;
  picture.custom_ptr = &writer;
  REQUIRE(WebPEncode(&config, &picture));
  std::string file(reinterpret_cast<const char*>(writer.mem), writer.size);
  WebPPictureFree(&picture);
  WebPMemoryWriterClear(&writer);
  return file;
}

TEST_CASE("fault 35: webp: a large image looks for a stop all over it, and is the same") {
  for (const bool is_lossless : {false, true}) {
    for (const bool has_alpha : {false, true}) {
      DYNAMIC_SECTION((is_lossless ? "lossless" : "lossy") << (has_alpha ? " with alpha" : "")) {
        const std::string file = Encoded(3072, 2048, has_alpha, is_lossless, 7);
        CompareInPieces(file);
        FramesShape shape;
        test::CheckStopsSoon([&] {
          const bool decoded = Decode(file, {}, &shape).ok();
          CHECK(decoded);
        });
      }
    }
  }
}

// The chunks of an image as a frame has them.
std::string ImageChunks(const std::string& file) {
  constexpr size_t kFileHeadBytes = 12, kExtendedBytes = 18;
  const bool is_extended = file.compare(kFileHeadBytes, 4, "VP8X") == 0;
  return file.substr(kFileHeadBytes + (is_extended ? kExtendedBytes : 0));
}

struct AnimationFrame {
  uint32_t x, y, width, height;
  bool replaces;  // instead of being blended
  bool clears;
  std::string image;  // its chunks
};

std::string Animation(uint32_t width, uint32_t height, bool has_alpha,
                      const std::vector<AnimationFrame>& frames) {
  std::string chunks =
      Chunk("VP8X", LittleEndian(2 | (has_alpha ? 16 : 0), 4) + Sides(width, height)) +
      Chunk("ANIM", std::string(6, '\0'));
  for (const AnimationFrame& frame : frames) {
    chunks += Chunk("ANMF", LittleEndian(frame.x / 2, 3) + LittleEndian(frame.y / 2, 3) +
                                Sides(frame.width, frame.height) + LittleEndian(40, 3) +
                                LittleEndian((frame.replaces ? 2 : 0) | (frame.clears ? 1 : 0), 1) +
                                frame.image);
  }
  return File(chunks);
}

// What libwebp's own decoder of animations makes of it: every frame, with alpha. Nothing where it
// refuses one.
std::vector<uint8_t> ByLibwebp(const std::string& file) {
  const WebPData data = {reinterpret_cast<const uint8_t*>(file.data()), file.size()};
  const std::unique_ptr<WebPAnimDecoder, void (*)(WebPAnimDecoder*)> decoder(
      WebPAnimDecoderNew(&data, nullptr), &WebPAnimDecoderDelete);
  WebPAnimInfo info;
  if (decoder == nullptr || WebPAnimDecoderGetInfo(decoder.get(), &info) == 0) return {};
  std::vector<uint8_t> pixels;
  for (uint32_t i = 0; i < info.frame_count; ++i) {
    uint8_t* canvas = nullptr;
    int end_ms = 0;
    if (WebPAnimDecoderGetNext(decoder.get(), &canvas, &end_ms) == 0) return {};
    pixels.insert(pixels.end(), canvas,
                  canvas + size_t{info.canvas_width} * info.canvas_height * 4);
  }
  return pixels;
}

TEST_CASE("webp: the frames of an animation are those of libwebp's own decoder of animations") {
  std::mt19937 dice(1);
  const auto below = [&dice](uint32_t bound) { return static_cast<uint32_t>(dice() % bound); };
  int decoded = 0, refused = 0;
  for (int i = 0; i < 400; ++i) {
    CAPTURE(i);
    const uint32_t width = 10 + below(30), height = 10 + below(30);
    std::vector<AnimationFrame> frames(1 + below(5));
    for (AnimationFrame& frame : frames) {
      const bool is_whole = below(3) == 0;
      frame.x = is_whole ? 0 : 2 * below(4);
      frame.y = is_whole ? 0 : 2 * below(4);
      frame.width = is_whole ? width : 1 + below(width - frame.x);
      frame.height = is_whole ? height : 1 + below(height - frame.y);
      frame.replaces = below(3) == 0;
      frame.clears = below(3) == 0;
      frame.image =
          ImageChunks(Encoded(static_cast<int>(frame.width), static_cast<int>(frame.height),
                              below(3) > 0, below(2) == 0, 7, dice()));
    }
    std::string file = Animation(width, height, /*has_alpha=*/true, frames);
    // Some are damaged behind the heads.
    for (uint32_t flips = i % 4 == 3 ? 1 + below(3) : 0; flips > 0; --flips)
      file[70 + below(static_cast<uint32_t>(file.size()) - 70)] ^= static_cast<char>(1 << below(8));
    const std::vector<uint8_t> expected = ByLibwebp(file);
    FramesShape shape;
    const auto found = Decode(file, {.pixels_at_once = INT64_MAX}, &shape);
    if (!found.ok() || shape.channels != 4) {
      // What is in front of the frames may say that there is no alpha, or no animation.
      CHECK((expected.empty() || i % 4 == 3));
      ++refused;
      continue;
    }
    const bool is_same = *found == expected || shape.frames * shape.width * shape.height == 0;
    CHECK(is_same);
    CompareInPieces(file);
    ++decoded;
  }
  CHECK(decoded > 300);
  CHECK(refused > 10);
}

TEST_CASE("fault 35: webp: a large frame of an animation looks for a stop all over it") {
  for (const bool is_lossless : {false, true}) {
    DYNAMIC_SECTION((is_lossless ? "lossless" : "lossy")) {
      const std::string image =
          ImageChunks(Encoded(3072, 2048, /*has_alpha=*/true, is_lossless, 7));
      const std::string file =
          Animation(3072, 2048, /*has_alpha=*/true, {{0, 0, 3072, 2048, false, false, image}});
      FramesShape shape;
      test::CheckStopsSoon([&] {
        const bool decoded = Decode(file, {}, &shape).ok();
        CHECK(decoded);
      });
    }
  }
}

TEST_CASE("fault 35: webp: an animation of many small frames looks for a stop between them") {
  // No canvas and no image is long enough for a look by itself.
  const std::string image = ImageChunks(Encoded(16, 16, /*has_alpha=*/true, true, 7));
  std::vector<AnimationFrame> frames(64, {0, 0, 16, 16, false, true, image});
  const std::string file = Animation(1024, 1000, /*has_alpha=*/true, frames);
  const auto* const data = reinterpret_cast<const uint8_t*>(file.data());
  // Kept, so that a run's time is that of the decoder.
  std::vector<uint8_t> pixels(size_t{64} * 1024 * 1000 * 4);
  test::CheckStopsSoon([&] {
    WebpDecoder decoder;
    const auto shape = decoder.Start(data, file.size(), {});
    REQUIRE(shape.ok());
    REQUIRE(shape->bytes() == pixels.size());
    const bool decoded = decoder.Decode(pixels.data()).ok();
    CHECK(decoded);
  });
}

// --- looks for a stop within what is done for a canvas ------------------------------------------

TEST_CASE("fault 35: webp: a canvas that is copied into the result looks for a stop") {
  constexpr uint32_t kSide = 2048;
  for (const bool has_alpha : {false, true}) {
    CAPTURE(has_alpha);
    const std::string image = ImageChunks(Encoded(16, 16, has_alpha, true, 7));
    const std::string file =
        Animation(kSide, kSide, has_alpha, {{0, 0, 16, 16, false, false, image}});
    WebpDecoder decoder;
    const auto shape =
        decoder.Start(reinterpret_cast<const uint8_t*>(file.data()), file.size(), {});
    REQUIRE(shape.ok());
    REQUIRE(shape->channels == (has_alpha ? 4 : 3));
    std::vector<uint8_t> pixels(shape->bytes(), 0x77);
    // In the first piece of several.
    const test::StopAtTouch told(pixels.data() + (size_t{1} << 20), test::Touch::kWrite);
    CHECK_THROWS_AS(decoder.Decode(pixels.data()), Stopped);
    CHECK(told.was_touched());
    CHECK(pixels.back() == 0x77);
  }
}

// Frames of two pieces each (base/in_pieces.h), drawn one after another; images are too small for a
// look of their own.
struct Canvas {
  static constexpr uint32_t kSide = 2048;
  static constexpr size_t kBytes = size_t{4} * kSide * kSide;

  // `first_clears`: the place of the first frame, of that height, is transparent under the next
  // one, and with it nothing is seen of what is below.
  Canvas(bool first_clears, uint32_t first_height)
      : file(Animation(
            kSide, kSide, /*has_alpha=*/true,
            {{0, 0, kSide, first_height, false, first_clears,
              ImageChunks(Encoded(kSide, static_cast<int>(first_height), false, true, 7))},
             {4, 4, 16, 16, false, false, ImageChunks(Encoded(16, 16, true, true, 7))}})),
        frames(WebpFrames::Open(reinterpret_cast<const uint8_t*>(file.data()), file.size(),
                                INT64_MAX)) {
    static_assert(kBytes == 2 * kPieceBytes);
    REQUIRE(frames != nullptr);
    pixels = frames->Next();
    REQUIRE(pixels != nullptr);
    REQUIRE(pixels[3] == 255);
  }

  // Draws the second frame, and tells it to stop at that byte of the canvas.
  bool StopsAt(size_t byte, test::Touch touch) const {
    const test::StopAtTouch told(pixels + byte, touch);
    bool has_stopped = false;
    try {
      frames->Next();
    } catch (const Stopped&) {
      has_stopped = true;
    }
    CHECK(told.was_touched());
    return has_stopped;
  }
  // Whether what is drawn has not been begun.
  bool is_untouched() const { return pixels[3] == 255; }

  const std::string file;
  const std::unique_ptr<WebpFrames> frames;
  const uint8_t* pixels = nullptr;  // of the first frame
};

constexpr size_t kSecondPage = 4096;

TEST_CASE("fault 35: webp: what is done for a canvas looks for a stop") {
  SECTION("the copy of the one before") {
    const Canvas canvas(true, 16);
    CHECK(canvas.StopsAt(kSecondPage, test::Touch::kAny));
    CHECK(canvas.is_untouched());
  }
  SECTION("a large place of it that becomes transparent") {
    const Canvas canvas(true, Canvas::kSide / 2);
    // The copy's last page, behind which it does not look any more.
    CHECK(canvas.StopsAt(Canvas::kBytes - 1, test::Touch::kAny));
    CHECK(canvas.is_untouched());
  }
  SECTION("one that begins empty") {
    const Canvas canvas(true, 16);
    CHECK(canvas.StopsAt(kSecondPage, test::Touch::kWrite));
    CHECK_FALSE(canvas.is_untouched());
  }
  SECTION("one that begins as the one before") {
    const Canvas canvas(false, 16);
    CHECK(canvas.StopsAt(kSecondPage, test::Touch::kWrite));
  }
}

std::shared_ptr<MemoryAccount> Account(uint64_t bytes_max) {
  MemoryAccount::Options options;
  options.name = "pipeline p";
  options.limit = "the limit";
  options.bytes_max = bytes_max;
  return MemoryAccount::Create(std::move(options));
}

TEST_CASE("fault 35: webp: both canvases of an animation are charged") {
  constexpr uint64_t kCanvasBytes = uint64_t{4} * 1024 * 1024;
  const std::string image = ImageChunks(Encoded(16, 16, /*has_alpha=*/true, true, 7));
  const std::string file =
      Animation(1024, 1024, /*has_alpha=*/true,
                std::vector<AnimationFrame>(2, {0, 0, 16, 16, false, false, image}));
  for (const uint64_t canvases : {0, 1, 2}) {
    CAPTURE(canvases);
    const auto account = Account(canvases * kCanvasBytes + kCanvasBytes / 2);
    {
      const MemoryAccount::Scope charged(account.get());
      const auto frames =
          WebpFrames::Open(reinterpret_cast<const uint8_t*>(file.data()), file.size(), INT64_MAX);
      REQUIRE(frames != nullptr);
      for (const uint64_t needed : {1, 2}) {
        if (canvases < needed) {
          CHECK_THROWS_AS(frames->Next(), MemoryLimitError);
          break;
        }
        CHECK(frames->Next() != nullptr);
        CHECK(account->taken() == needed * kCanvasBytes);
      }
    }
    CHECK(account->taken() == 0);
  }
}

TEST_CASE("fault 35: webp: what libwebp keeps of an image's pixels is charged") {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  struct Case {
    bool has_alpha, is_lossless;
    uint64_t kept;  // of a mebipixel
  };
  for (const Case& test : {Case{false, true, 4 * kMiB}, Case{true, true, 4 * kMiB},
                           Case{true, false, 5 * kMiB}, Case{false, false, 0}}) {
    const std::string file = Encoded(1024, 1024, test.has_alpha, test.is_lossless, 7);
    for (const int64_t pixels_at_once : {int64_t{0}, INT64_MAX}) {
      CAPTURE(test.has_alpha, test.is_lossless, pixels_at_once);
      const auto is_refused = [&](uint64_t bytes_max) {
        const auto account = Account(bytes_max);
        const MemoryAccount::Scope charged(account.get());
        FramesShape shape;
        // Not inside of a macro, which would take the error for a failure.
        try {
          const bool decoded = Decode(file, {.pixels_at_once = pixels_at_once}, &shape).ok();
          CHECK(decoded);
        } catch (const MemoryLimitError&) {
          return true;
        }
        CHECK(account->taken() == 0);
        return false;
      };
      CHECK_FALSE(is_refused(test.kept));
      if (test.kept > 0) CHECK(is_refused(test.kept - 1));
    }
  }
}

TEST_CASE("fault 35: webp: what libwebp lists of an animation is charged before it does so") {
  const auto account = Account(uint64_t{64} << 20);
  const MemoryAccount::Scope charged(account.get());
  std::string chunks = Frames(9, 8, 3).substr(12);
  FramesShape shape;
  CHECK(Decode(File(chunks), {}, &shape).ok());
  // A million empty chunks that nobody knows.
  for (int i = 0; i < 1 << 20; ++i) chunks += Chunk("XXXX", "");
  CHECK_THROWS_AS(Decode(File(chunks), {}, &shape), MemoryLimitError);
  CHECK(account->taken() == 0);
}

TEST_CASE("fault 21b: webp: sizes are checked before anything is allocated") {
  // Of a lossless image a signature and the sides, 14 bits each, less one.
  const std::string sides = std::string("\x2f") + LittleEndian(16383 | 16382 << 14, 4);
  const struct {
    std::string file;
    std::string message;
  } cases[] = {
      {File(Chunk("VP8L", sides + std::string(20, '\0'))),
       "16384 x 16383 > 16384 x 16384 or 67108864 pixels"},
      {Frames(1 << 24, 100, 1), "16777216 x 100 > 16384 x 16384 or 67108864 pixels"},
      {Frames(8192, 4096, 3), "3 frames of 8192 x 4096 > 16384 or 67108864 pixels"},
      {Frames(9, 8, 16385), "16385 frames of 9 x 8 > 16384 or 67108864 pixels"},
  };
  for (const auto& c : cases) {
    FramesShape shape;
    const absl::Status status = Decode(c.file, {}, &shape).status();
    CHECK(status.code() == absl::StatusCode::kDataLoss);
    CHECK(status.message() == "WebP image is too large: " + c.message);
    CHECK(shape.bytes() == 0);
  }
}

}  // namespace
}  // namespace penstock::testing
