// Models of SentencePiece that are damaged, forged or make no sense: refused with their place in
// the file, or read as something harmless. Fault 21d.
#include <algorithm>
#include <atomic>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/stop_flag.h"
#include "server/text/sentencepiece/piece_trie.h"
#include "server/text/tokenizer.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/text/sentencepiece/model_bytes.h"

namespace penstock::text {
namespace {

using testing::Field;
using testing::Number;
using testing::SentencePiece;

std::string Units(const std::vector<uint32_t>& units) {
  return {reinterpret_cast<const char*>(units.data()), units.size() * sizeof(uint32_t)};
}
std::string Charsmap(const std::string& map) { return Field(3, Field(2, map)); }

const std::string kSound = SentencePiece("<unk>", 2) + SentencePiece("a") + SentencePiece("b");

// Opens whatever it is, and works with it where that is possible.
bool TryToUse(const std::string& file) {
  const auto tokenizer = MakeSentencePieceTokenizer(file);
  if (!tokenizer.ok()) {
    CHECK(tokenizer.status().code() == absl::StatusCode::kInvalidArgument);
    return false;
  }
  const auto scratch = (*tokenizer)->Borrow();
  const std::string text = " Hello  w\u00f6rld <sep><cls>xyz e\u0301\u200b \u4f60\u597d ab\t12 ";
  if (!(*tokenizer)->Encode(text, {}, *scratch).ok()) return true;
  std::string back;
  CHECK((*tokenizer)->Decode((*scratch).ids.span(), true, false, &back).ok());
  return true;
}

TEST_CASE("models of SentencePiece that make no sense are refused by name", "[text]") {
  REQUIRE(TryToUse(kSound));
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) {
    const char* const digits = "0123456789ABCDEF";
    if (byte != 0x41)
      bytes += SentencePiece(std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">", 6);
  }
  const std::string falls_back = Field(2, Number(35, 1));
  const std::pair<std::string, std::string> cases[] = {
      {"", "pieces: expected one for what is unknown, found none"},
      {SentencePiece("a"), "pieces: expected one for what is unknown, found none"},
      {SentencePiece("<unk>", 2), "pieces: expected one by which a text is cut, found none"},
      {kSound + SentencePiece("a"), "pieces[3]: expected pieces that differ, found \"a\""},
      {kSound + SentencePiece("<no>", 2), "pieces[3]: expected one piece for what is unknown"},
      {kSound + SentencePiece(""),
       "pieces[3].piece: expected a text without zero bytes, found none"},
      {kSound + SentencePiece(std::string("a\0b", 3)),
       "pieces[3].piece: expected a text without zero bytes, found 3 bytes with one"},
      {kSound + SentencePiece("c", 1, std::numeric_limits<float>::quiet_NaN()),
       "pieces[3].score: expected a number, found NaN"},
      {kSound + SentencePiece("<0x41>", 6),
       "pieces[3]: expected no pieces of bytes without byte_fallback"},
      {kSound + falls_back,
       "pieces: expected one for each byte, as byte_fallback asks for, found "
       "none for <0x00>"},
      {kSound + falls_back + bytes,
       "pieces: expected one for each byte, as byte_fallback asks for, "
       "found none for <0x41>"},
      {kSound + falls_back + SentencePiece("<0xff>", 6),
       "pieces[3]: expected <0x00> to <0xFF> as a piece of a byte, found \"<0xff>\""},
      // Sizes that go beyond the file.
      {kSound + "\x0a\x7f", "the model: expected a field of a protobuf message, found other bytes"},
      {kSound + "\x0a\xff\xff\xff\xff\x0f", "the model: expected a field"},
      {kSound + Field(1, "\x0a\x05xx"), "pieces[3]: expected a field of a protobuf message"},
      {kSound + Field(1, "\x15\x01\x02"), "pieces[3]: expected a field of a protobuf message"},
      {kSound + Field(2, "\x18"), "trainer_spec: expected a field of a protobuf message"},
      {kSound + std::string(300, '\x0b'), "the model: expected a field"},
      {kSound + std::string(2, '\0'), "the model: expected a field"},
      {kSound + Charsmap("abc"), "normalizer_spec.precompiled_charsmap: expected units of four"},
      {kSound + Charsmap(Units({0}) + "z"), "normalizer_spec.precompiled_charsmap: expected units"},
      {kSound + Charsmap(Units({16, 0, 0, 0, 0})),
       "normalizer_spec.precompiled_charsmap: expected"},
      {kSound + Charsmap(Units({0xffffffff, 0, 0}) + "z"), "normalizer_spec.precompiled_charsmap"},
      {kSound + Charsmap(Units({3, 0}) + "zzzz"), "normalizer_spec.precompiled_charsmap: expected"},
      {kSound + Charsmap(Units({4, 0}) + "z"),
       "normalizer_spec.precompiled_charsmap: expected a zero byte at the end"},
      // A value that lies behind the units, and one whose replacement lies behind all.
      {kSound + Charsmap(Units({4, 1u << 8 | 9u << 10}) + std::string(1, '\0')),
       "normalizer_spec.precompiled_charsmap: expected places in the replacements, found another"},
      {kSound + Charsmap(Units({8, 1u << 8 | 1u << 10, 1u << 31 | 9}) + std::string(1, '\0')),
       "normalizer_spec.precompiled_charsmap: expected places in the replacements, found another"},
      {kSound + Field(5, Field(2, "abc")), "denormalizer_spec.precompiled_charsmap: expected"},
      {SentencePiece("<unk>", 2) + SentencePiece(std::string(17 << 20, 'a')),
       "pieces: longer than the limit of 16777216 bytes together"},
  };
  for (const auto& [file, expected] : cases) {
    const auto made = MakeSentencePieceTokenizer(file);
    INFO(expected << "\n" << made.status().ToString());
    CHECK(made.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(made.status().message().find(expected) == 0);
  }
}

TEST_CASE("more pieces than the limit are refused", "[text]") {
  std::string file = SentencePiece("<unk>", 2);
  for (uint32_t i = 1; i <= 1u << 21; ++i) {
    const char text[] = {static_cast<char>('0' + (i & 63)), static_cast<char>('0' + (i >> 6 & 63)),
                         static_cast<char>('0' + (i >> 12 & 63)),
                         static_cast<char>('0' + (i >> 18))};
    file += "\x0a\x06\x0a\x04";
    file.append(text, sizeof(text));
  }
  CHECK(MakeSentencePieceTokenizer(file).status().message() ==
        "pieces: more than the limit of 2097152");
}

TEST_CASE("models of SentencePiece that are cut are refused or harmless", "[text]") {
  for (const char* const name : {"bpe.model", "unigram_bytes.model"}) {
    const std::string file = testing::ReadGolden(std::string("sentencepiece/") + name);
    REQUIRE(TryToUse(file));
    size_t used = 0;
    for (size_t size = 0; size < file.size(); size += 1 + size / 500)
      used += TryToUse(file.substr(0, size));
    // What ends between two fields is a model as well.
    CHECK(used < 400);
  }
}

TEST_CASE("models of SentencePiece with a bit flipped are refused or harmless", "[text]") {
  for (const char* const name : {"bpe.model", "unigram_bytes.model", "characters.model"}) {
    std::string file = testing::ReadGolden(std::string("sentencepiece/") + name);
    std::mt19937 draw(5);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same ones each time
    for (int i = 0; i < 1500; ++i) {
      char& byte = file[draw() % file.size()];
      const char bit = static_cast<char>(1 << draw() % 8);
      byte = static_cast<char>(byte ^ bit);
      TryToUse(file);
      byte = static_cast<char>(byte ^ bit);
    }
  }
}

// A map in which each 'a' leads to another one without an end: unit 0x61 has itself as its child.
std::vector<uint32_t> CircleOfUnits() {
  std::vector<uint32_t> units(128);
  // Offsets are XORed: from 0x61 by 0x61 to 0, and by the next 'a' to 0x61 again.
  units[0x61] = 0x61u << 10 | 0x61;
  return units;
}

TEST_CASE("rules that make a text far longer are refused with the limit", "[text]") {
  // 'a' becomes a megabyte: unit 0 leads to 0x61, whose value lies in unit 0x61 ^ 0x60.
  std::vector<uint32_t> units(128);
  units[0x61] = 0x60u << 10 | 1u << 8 | 0x61;
  units[1] = 1u << 31;
  const std::string file = kSound + Charsmap(Units({512}) + Units(units) +
                                             std::string(1 << 20, 'b') + std::string(1, '\0'));
  const auto tokenizer = MakeSentencePieceTokenizer(file);
  REQUIRE(tokenizer.ok());
  const auto scratch = (*tokenizer)->Borrow();
  CHECK((*tokenizer)->Encode("b", {}, *scratch).ok());
  const absl::Status status = (*tokenizer)->Encode(std::string(1000, 'a'), {}, *scratch);
  CHECK(status.code() == absl::StatusCode::kResourceExhausted);
  CHECK(status.message().find("text longer than the limit when the tokenizer's rules") == 0);
}

TEST_CASE("a map with a circle ends, and at a stop", "[text]") {
  const auto tokenizer = MakeSentencePieceTokenizer(
      kSound + Charsmap(Units({512}) + Units(CircleOfUnits()) + std::string(1, '\0')));
  REQUIRE(tokenizer.ok());
  const auto scratch = (*tokenizer)->Borrow();
  const std::string text(4 << 20, 'a');
  CHECK((*tokenizer)->Encode(text.substr(0, 1 << 16), {}, *scratch).ok());
  const std::atomic<bool> stop{true};
  const StopFlag::Scope scope(&stop);
  CHECK_THROWS_AS((*tokenizer)->Encode(text, {}, *scratch).IgnoreError(), Stopped);
}

TEST_CASE("a trie finds what a text begins with", "[text]") {
  size_t looked = 0;
  std::mt19937 draw(3);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same ones each time
  for (const int letters : {2, 5, 256}) {
    std::vector<std::string> texts;
    for (int i = 0; i < 3000; ++i) {
      std::string text;
      for (size_t n = draw() % 6 + 1; n > 0; --n)
        text.push_back(static_cast<char>(draw() % static_cast<uint32_t>(letters)));
      if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
    }
    std::vector<PieceTrie::Entry> entries;
    for (uint32_t i = 0; i < texts.size(); ++i) entries.emplace_back(texts[i], i);
    const PieceTrie trie(entries);
    for (int i = 0; i < 300; ++i) {
      std::string text;
      for (int n = 0; n < 8; ++n)
        text.push_back(static_cast<char>(draw() % static_cast<uint32_t>(letters)));
      std::vector<std::pair<size_t, uint32_t>> found, expected;
      trie.ForEachPrefix(text,
                         [&](size_t bytes, uint32_t value) { found.emplace_back(bytes, value); });
      for (uint32_t k = 0; k < texts.size(); ++k)
        if (text.compare(0, texts[k].size(), texts[k]) == 0)
          expected.emplace_back(texts[k].size(), k);
      std::sort(expected.begin(), expected.end());
      CHECK(found == expected);
      CHECK(trie.LongestPrefix(text, &looked) == (expected.empty() ? 0 : expected.back().first));
      CHECK(trie.begins(static_cast<uint8_t>(text[0])) ==
            std::any_of(texts.begin(), texts.end(),
                        [&](const std::string& one) { return one[0] == text[0]; }));
    }
  }
  const PieceTrie none;
  CHECK(none.LongestPrefix("abc", &looked) == 0);
  CHECK_FALSE(none.begins(0));
}

}  // namespace
}  // namespace penstock::text
