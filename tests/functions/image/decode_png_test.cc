// TensorFlow's results for PNG files of every kind, whole and damaged
// (tests/golden/make_png_goldens.py).
#include <zlib.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/arena.h"
#include "tests/functions/image/row_function.h"
#include "tests/support/catch.h"
#include "tests/support/compressed.h"
#include "tests/support/golden.h"
#include "tests/support/hex.h"
#include "tests/support/peak_memory.h"

namespace penstock::testing {
namespace {

using Json = nlohmann::json;

// The status, and in `out` what was decoded. The data lies on its own heap block, so that a
// sanitizer sees reads beyond it.
absl::Status Decode(const std::vector<uint8_t>& bytes, int64_t channels, const std::string& dtype,
                    CollectedOutput& out) {
  const auto bound = Bind("decode_png", {DType::kString, {}}, {channels, dtype});
  REQUIRE(bound.ok());
  CHECK(bound->type.dtype == *DTypeFromName(dtype));
  CHECK(bound->type.shape[2] == (channels == 0 ? kUnknownSize : channels));
  const auto data = std::make_unique<uint8_t[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), data.get());
  expr::RowValue value;
  value.data = data.get();
  value.bytes = bytes.size();
  Arena arena;
  return bound->kernel->Run({&value, 1}, arena, out);
}

TEST_CASE("decode_png: TensorFlow's bytes and verdicts") {
  const Json document = Json::parse(ReadGolden("image_png.json"));
  REQUIRE(document["files"].size() > 100);
  int num_refused = 0;
  for (const auto& file : document["files"]) {
    const std::vector<uint8_t> bytes = test::BytesFromHex(file["bytes"].get<std::string>());
    for (const auto& result : file["results"]) {
      const auto channels = result["channels"].get<int64_t>();
      const auto dtype = result["dtype"].get<std::string>();
      CAPTURE(file["name"].get<std::string>(), channels, dtype);
      CollectedOutput out;
      const absl::Status status = Decode(bytes, channels, dtype, out);
      CAPTURE(status.ToString());
      const Json& image = result["image"];
      CHECK(status.ok() == !image.is_null());
      if (image.is_null()) {
        ++num_refused;
        CHECK(status.code() == absl::StatusCode::kDataLoss);
        CHECK_THAT(std::string(status.message()), Catch::StartsWith("PNG data is damaged: "));
      } else if (status.ok()) {
        CHECK(Json(std::vector<int64_t>(out.shape().begin(), out.shape().end())) == image["shape"]);
        const uint64_t hash = std::stoull(image["hash"].get<std::string>(), nullptr, 16);
        CHECK(Fnv1a(out.bytes().data(), out.bytes().size()) == hash);
      }
    }
  }
  CHECK(num_refused > 20);
}

TEST_CASE("fault 21: decode_png: sizes are checked before anything is allocated") {
  // The header of an image of 20000 x 1 pixels of 8-bit grey; its checksum is right.
  std::vector<uint8_t> bytes = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0,    0, 0,
                                13,   'I', 'H', 'D', 'R',  0,    0,    0x4e, 0x20, 0, 0,
                                0,    1,   8,   0,   0,    0,    0,    0,    0,    0, 0};
  uint32_t crc = 0xffffffff;
  for (size_t i = 12; i < 29; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
  }
  for (int i = 0; i < 4; ++i) bytes[29 + i] = static_cast<uint8_t>(~crc >> (24 - 8 * i));
  bytes.insert(bytes.end(), {0, 0, 0, 1, 'I', 'D', 'A', 'T', 0});
  CollectedOutput out;
  const absl::Status status = Decode(bytes, 1, "uint8", out);
  CHECK(status.code() == absl::StatusCode::kDataLoss);
  CHECK_THAT(std::string(status.message()), Catch::Contains("larger than the limit of 16384"));
  CHECK(out.times_shaped() == 0);
}

std::string BigEndian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string Chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto crc =
      static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(body.data()), body.size()));
  return BigEndian(data.size()) + body + BigEndian(crc);
}

// TensorFlow 2.21 gives the same pixels for these files.
TEST_CASE("fault 21: decode_png: text that unpacks to megabytes is passed over") {
  // libpng itself would unpack and keep the latter, which are below its limit of 8,000,000 bytes.
  const struct {
    size_t bytes;
    int chunks;
  } cases[] = {{64 << 20, 1}, {7 << 20, 10}};
  for (const auto& c : cases) {
    std::string text;
    {
      const std::string chunk = Chunk(
          "zTXt", std::string("a\0\0", 3) + test::Zlib(std::string(c.bytes, 'x'), /*level=*/9));
      for (int i = 0; i < c.chunks; ++i) text += chunk;
    }
    const std::string data =
        Chunk("IDAT", test::Zlib(std::string({0, 1, 2, 0, 3, 4})));  // two rows, unfiltered
    for (const bool behind : {false, true}) {
      // By the short way, and by libpng to the end.
      for (const std::string& dtype : {std::string("uint8"), std::string("uint16")}) {
        CAPTURE(c.bytes, behind, dtype);
        const std::string file =
            "\x89PNG\r\n\x1a\n" +
            Chunk("IHDR", BigEndian(2) + BigEndian(2) + std::string({8, 0, 0, 0, 0})) +
            (behind ? data + text : text + data) + Chunk("IEND", "");
        REQUIRE(file.size() < (1 << 20));
        CollectedOutput out;
        const bool is_measured = ForgetPeak();
        const int64_t before_kib = StatusKib("VmRSS:");
        const absl::Status status = Decode({file.begin(), file.end()}, 0, dtype, out);
        if (is_measured) {
          CHECK(StatusKib("VmHWM:") - before_kib < (16 << 10));
        } else {
          WARN("its memory was not measured: /proc/self/clear_refs cannot be written");
        }
        CHECK(status == absl::OkStatus());
        if (dtype == "uint8") {
          CHECK(out.bytes() == std::vector<uint8_t>{1, 2, 3, 4});
        } else {
          CHECK(out.bytes() == std::vector<uint8_t>{1, 1, 2, 2, 3, 3, 4, 4});
        }
      }
    }
  }
}

TEST_CASE("decode_png: wrong arguments") {
  const TensorType contents{DType::kString, {}};
  CHECK(Bind("decode_png", contents, {int64_t{2}, {}}).status().message() ==
        "channels: expected 0, 1, 3 or 4 as a constant");
  CHECK(Bind("decode_png", contents, {{}, std::string("float32")}).status().message() ==
        "dtype: expected \"uint8\" or \"uint16\"");
  CHECK(Bind("decode_png", {DType::kUint8, {4}}, {{}, {}}).status().message() ==
        "contents: expected a string scalar, found uint8 (4,)");
  CHECK(Bind("decode_png", contents, {{}, {}}).ok());
}

}  // namespace
}  // namespace penstock::testing
