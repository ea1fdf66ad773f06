// Frames that liblz4 made (tests/golden/make_lz4_goldens.py), and what becomes of cut and changed
// ones.
#include "io/arrow/lz4_frame.h"

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "io/arrow/arrow_codec.h"
#include "nlohmann/json.hpp"
#include "tests/support/catch.h"
#include "tests/support/tree.h"

namespace penstock {
namespace {

using Catch::Matchers::Contains;

struct Frame {
  std::string name, frame, plain;
};

std::string FromBase64(const std::string& text) {
  std::string bytes;
  REQUIRE(absl::Base64Unescape(text, &bytes));
  return bytes;
}

const std::vector<Frame>& Goldens() {
  static const auto* const frames = [] {
    std::ifstream file(testing::InTree("tests/golden/lz4_frames.json"));
    auto* const read = new std::vector<Frame>;
    const auto goldens = nlohmann::json::parse(file);
    for (const auto& one : goldens["cases"]) {
      Frame frame{one["name"], FromBase64(one["frame"]), ""};
      for (const auto& piece : goldens["plains"][one["plain"].get<std::string>()]) {
        const std::string text = FromBase64(piece[0]);
        for (int i = 0; i < piece[1].get<int>(); ++i) frame.plain += text;
      }
      REQUIRE(frame.plain.size() == one["bytes"].get<size_t>());
      read->push_back(std::move(frame));
    }
    REQUIRE(read->size() > 50);
    return read;
  }();
  return *frames;
}

// In memory of exactly these sizes, so that a sanitizer sees what is touched beyond them; and the
// bytes behind the result are looked at without one.
absl::StatusOr<std::string> Unpack(const std::string& frame, size_t bytes) {
  const std::vector<uint8_t> packed(frame.begin(), frame.end());
  std::vector<uint8_t> plain(bytes + 32, 0x5A);
  const absl::Status status = UnpackLz4Frame(packed, absl::MakeSpan(plain).first(bytes));
  for (size_t i = bytes; i < plain.size(); ++i) REQUIRE(plain[i] == 0x5A);
  if (!status.ok()) {
    CHECK(absl::IsDataLoss(status));
    return status;
  }
  return std::string(plain.begin(), plain.begin() + static_cast<ptrdiff_t>(bytes));
}

std::string ErrorOf(const std::string& frame, size_t bytes) {
  const auto plain = Unpack(frame, bytes);
  return plain.ok() ? "none" : std::string(plain.status().message());
}

TEST_CASE("lz4: frames hold what liblz4 put into them") {
  for (const Frame& one : Goldens()) {
    INFO(one.name);
    const auto plain = Unpack(one.frame, one.plain.size());
    INFO(plain.status().message());
    REQUIRE(plain.ok());
    CHECK((*plain == one.plain));
  }
}

TEST_CASE("lz4: frames of another length, cut ones, and bytes behind them") {
  for (const Frame& one : Goldens()) {
    INFO(one.name);
    CHECK(ErrorOf(one.frame, one.plain.size() + 1) != "none");
    if (!one.plain.empty()) CHECK(ErrorOf(one.frame, one.plain.size() - 1) != "none");
    CHECK(ErrorOf(one.frame + '\0', one.plain.size()) != "none");
    for (size_t length = 0; length < one.frame.size(); length += 1 + length / 200)
      CHECK(ErrorOf(one.frame.substr(0, length), one.plain.size()) != "none");
  }
}

TEST_CASE("lz4: any changed bit is found by a frame's sum, and harms nothing without one") {
  int silent = 0, changed = 0;
  for (const Frame& one : Goldens()) {
    const bool has_sum = (one.frame[4] & 0x04) != 0;
    INFO(one.name);
    std::string frame = one.frame;
    for (size_t i = 0; i < frame.size(); i += 1 + i / 60) {
      for (int bit = 0; bit < 8; ++bit) {
        frame[i] = static_cast<char>(one.frame[i] ^ 1 << bit);
        const auto plain = Unpack(frame, one.plain.size());
        ++changed;
        if (has_sum) CHECK((!plain.ok() || *plain == one.plain));
        if (plain.ok() && *plain != one.plain) ++silent;
      }
      frame[i] = one.frame[i];
    }
  }
  CHECK(changed > 20'000);
  // Without a sum some do: so the cases do reach the sequences.
  CHECK(silent > 100);
}

TEST_CASE("lz4: what is refused, and in which words") {
  const std::string& words = [] {
    for (const Frame& one : Goldens()) {
      if (one.name == "words, sums") return one.frame;
    }
    return std::string();
  }();
  REQUIRE(words.size() > 100);
  std::string other = words;
  other[0] = 5;
  CHECK_THAT(ErrorOf(other, 10), Contains("it is no LZ4 frame"));
  other = words;
  other[4] = static_cast<char>(other[4] ^ 0x80);
  CHECK_THAT(ErrorOf(other, 10), Contains("a form that is not known"));
  other = words;
  other[4] = static_cast<char>(other[4] | 1);
  CHECK_THAT(ErrorOf(other, 10), Contains("needs a dictionary"));
  other = words;
  other[5] = 0x50;
  CHECK_THAT(ErrorOf(other, 10), Contains("the checksum of its LZ4 frame's head does not hold"));
  other = words;
  other[60] = static_cast<char>(other[60] ^ 1);
  CHECK_THAT(ErrorOf(other, 10), Contains("says that it holds"));
}

TEST_CASE("lz4: a buffer that says that it holds more than it can asks for no memory") {
  std::string buffer(8, '\0');
  const int64_t claimed = int64_t{1} << 30;
  std::memcpy(buffer.data(), &claimed, sizeof(claimed));
  buffer += Goldens()[5].frame;
  const auto plain = UnpackArrowBuffer(
      ArrowCodec::kLz4Frame, {reinterpret_cast<const uint8_t*>(buffer.data()), buffer.size()});
  REQUIRE_FALSE(plain.ok());
  CHECK(plain.status().code() == absl::StatusCode::kDataLoss);
  CHECK_THAT(std::string(plain.status().message()), Contains("more than"));
}

}  // namespace
}  // namespace penstock
