// Large compressed buffers: they are unpacked in pieces, with the bytes and verdicts of the
// library's own call for the whole, and a stop waits for none of them.
#include "io/arrow/arrow_codec.h"

#include <zstd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/in_pieces.h"
#include "tests/support/catch.h"
#include "tests/support/stops_soon.h"

namespace penstock {
namespace {

// Words that come again, and noise in between.
std::string Text(size_t bytes) {
  std::string text;
  text.reserve(bytes + 16);
  uint64_t state = 1;
  while (text.size() < bytes) {
    state = state * 6364136223846793005 + 1442695040888963407;
    text += std::to_string(state >> 33 & 0x3ff);
    text += state >> 63 != 0 ? " word " : ",";
  }
  text.resize(bytes);
  return text;
}

// A frame that says how many bytes it holds, or one that does not.
std::string Frame(const std::string& plain, bool says_size) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 1);
  std::string frame(ZSTD_compressBound(plain.size()) + 64, '\0');
  ZSTD_inBuffer in = {plain.data(), plain.size(), 0};
  ZSTD_outBuffer out = {frame.data(), frame.size(), 0};
  if (says_size) ZSTD_CCtx_setPledgedSrcSize(context, plain.size());
  // Of two calls, so that the library does not know the size by itself.
  const size_t rest = plain.size() / 2;
  in.size = rest;
  REQUIRE(ZSTD_compressStream2(context, &out, &in, ZSTD_e_continue) != size_t(-1));
  in.size = plain.size();
  REQUIRE(ZSTD_compressStream2(context, &out, &in, ZSTD_e_end) == 0);
  ZSTD_freeCCtx(context);
  frame.resize(out.pos);
  return frame;
}

std::string Buffer(const std::string& frame, int64_t claimed) {
  std::string buffer(sizeof(claimed), '\0');
  std::memcpy(buffer.data(), &claimed, sizeof(claimed));
  return buffer + frame;
}

absl::StatusOr<ArrowMemory> Unpack(ArrowCodec codec, const std::string& buffer) {
  return UnpackArrowBuffer(codec, {reinterpret_cast<const uint8_t*>(buffer.data()), buffer.size()});
}

// The library's verdict and bytes are those of the buffer.
void CheckFrames(const std::string& frames, size_t claimed) {
  std::string expected(claimed, '\0');
  const size_t found =
      ZSTD_decompress(expected.data(), expected.size(), frames.data(), frames.size());
  const auto plain = Unpack(ArrowCodec::kZstd, Buffer(frames, static_cast<int64_t>(claimed)));
  INFO(plain.status().ToString());
  REQUIRE(plain.ok() == (found == claimed));
  if (!plain.ok()) {
    CHECK(absl::IsDataLoss(plain.status()));
    return;
  }
  REQUIRE(plain->bytes == claimed);
  const bool is_same = std::memcmp(plain->block.get(), expected.data(), claimed) == 0;
  CHECK(is_same);
}

TEST_CASE("arrow: a large buffer of zstd frames is what the library makes of it") {
  const std::string text = Text(kPieceBytes + kPieceBytes / 4);
  for (const bool says_size : {true, false}) {
    CAPTURE(says_size);
    const std::string frame = Frame(text, says_size);
    CheckFrames(frame, text.size());
    CheckFrames(frame, text.size() - 1);
    CheckFrames(frame, text.size() + 1);
    for (const size_t cut : {1, 2, 100, 1'000'000})
      CheckFrames(frame.substr(0, frame.size() - cut), text.size());
    CheckFrames(frame + "behind", text.size());
    uint64_t state = 7;
    for (int i = 0; i < 60; ++i) {
      state = state * 6364136223846793005 + 1442695040888963407;
      std::string damaged = frame;
      damaged[(state >> 33) % (i < 30 ? 40 : frame.size())] ^= static_cast<char>(1 << i % 8);
      CheckFrames(damaged, text.size());
    }
  }
  // Several frames, and one that is passed over.
  const std::string skipped = std::string("\x50\x2a\x4d\x18\x03\0\0\0abc", 11);
  const std::string two = Frame(text, false) + skipped + Frame(text.substr(9), false);
  CheckFrames(two, 2 * text.size() - 9);
  // A frame of zeros is some bytes.
  CheckFrames(Frame(std::string(64 << 20, '\0'), false), 64 << 20);
  CheckFrames(Frame(std::string(64 << 20, '\0'), true), 64 << 20);
  // What was given up harms none that is read next.
  const std::atomic<bool> stop{true};
  const std::string frame = Frame(text, true);
  bool has_stopped = false;
  try {
    const StopFlag::Scope scope(&stop);
    (void)Unpack(ArrowCodec::kZstd, Buffer(frame, static_cast<int64_t>(text.size())));
  } catch (const Stopped&) {
    has_stopped = true;
  }
  CHECK(has_stopped);
  CheckFrames(frame, text.size());
  CheckFrames(Frame("few", true), 3);
}

// A frame of plain blocks with a sum of all of it that is wrong, or none.
std::string Lz4Frame(const std::string& plain, bool has_sum) {
  const uint8_t head[] = {static_cast<uint8_t>(0x60 | (has_sum ? 4 : 0)), 0x70};
  uint32_t sum = 374761393u + 2;
  for (const uint8_t byte : head) {
    sum += byte * 374761393u;
    sum = (sum << 11 | sum >> 21) * 2654435761u;
  }
  sum = (sum ^ sum >> 15) * 2246822519u;
  sum = (sum ^ sum >> 13) * 3266489917u;
  sum ^= sum >> 16;
  std::string frame("\x04\x22\x4d\x18", 4);
  frame.append(reinterpret_cast<const char*>(head), 2);
  frame += static_cast<char>(sum >> 8 & 0xff);
  const auto add = [&frame](uint32_t number) {
    frame.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  constexpr size_t kBlock = 4 << 20;
  for (size_t at = 0; at < plain.size(); at += kBlock) {
    const size_t bytes = std::min(kBlock, plain.size() - at);
    add(static_cast<uint32_t>(bytes) | 0x80000000);
    frame.append(plain, at, bytes);
  }
  add(0);
  if (has_sum) add(1);
  return frame;
}

TEST_CASE("fault 35: arrow: a large compressed buffer looks for a stop all over it") {
  const std::string text = Text(size_t{96} << 20);
  const struct {
    const char* name;
    ArrowCodec codec;
    std::string frame;
    bool is_sound;
  } cases[] = {
      {"zstd", ArrowCodec::kZstd, Frame(text, true), true},
      {"lz4", ArrowCodec::kLz4Frame, Lz4Frame(text, false), true},
      {"lz4 with a sum", ArrowCodec::kLz4Frame, Lz4Frame(text, true), false},
  };
  for (const auto& test : cases) {
    DYNAMIC_SECTION(test.name) {
      const std::string buffer = Buffer(test.frame, static_cast<int64_t>(text.size()));
      test::CheckStopsSoon([&] {
        const bool is_sound = Unpack(test.codec, buffer).ok();
        CHECK(is_sound == test.is_sound);
      });
    }
  }
  SECTION("as it is") {
    const std::string buffer = Buffer(text, -1);
    test::CheckStopsSoon([&] {
      const bool is_sound = Unpack(ArrowCodec::kZstd, buffer).ok();
      CHECK(is_sound);
    });
  }
}

}  // namespace
}  // namespace penstock
