// Ids, texts and refusals are those of `sentencepiece` (tests/golden/make_sentencepiece_goldens.py,
// make_sentencepiece_symbol_goldens.py and make_sentencepiece_refusal_goldens.py).
#include <zlib.h>

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "server/text/tokenizer.h"
#include "server/text/unicode/utf8.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/text/sentencepiece/model_bytes.h"

namespace penstock::text {
namespace {

constexpr uint32_t kBlock = 4096;
// As the script has them.
constexpr uint32_t kBlocks[] = {0, 1, 2, 3, 0xa, 0xf, 0x10, 0x11, 0x1d, 0x1f};
constexpr size_t kShown = 40;

const nlohmann::json& Cases() {
  static const auto& cases =
      *new nlohmann::json(nlohmann::json::parse(testing::ReadGolden("sentencepiece/cases.json")));
  return cases;
}

std::unique_ptr<Tokenizer> Open(const std::string& name) {
  auto tokenizer =
      MakeSentencePieceTokenizer(testing::ReadGolden("sentencepiece/" + name + ".model"));
  INFO(name << ": " << tokenizer.status().ToString());
  REQUIRE(tokenizer.ok());
  return *std::move(tokenizer);
}

std::vector<uint32_t> IdsOf(const Tokenizer& tokenizer, const std::string& text,
                            const EncodeOptions& options = {}) {
  const auto scratch = tokenizer.Borrow();
  const absl::Status status = tokenizer.Encode(text, options, *scratch);
  INFO(status.ToString());
  REQUIRE(status.ok());
  const auto ids = (*scratch).ids.span();
  return {ids.begin(), ids.end()};
}

uint32_t CrcOf(const std::vector<uint32_t>& ids) {
  return static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(ids.data()),
                                     static_cast<uInt>(ids.size() * sizeof(uint32_t))));
}

// As code_point_text() of the script has it.
std::string CodePointText(uint32_t block) {
  std::string text;
  for (uint32_t c = block * kBlock; c < (block + 1) * kBlock; ++c) {
    if (c >= 0xd800 && c <= 0xdfff) continue;
    std::string x;
    AppendCodePoint(c, &x);
    text += x + " a" + x + "b '" + x + "1" + x + "\nA" + x;
  }
  return text;
}

TEST_CASE("models of SentencePiece give the library's ids", "[text]") {
  const std::vector<std::string> texts = Cases()["texts"];
  for (const auto& [name, of] : Cases()["models"].items()) {
    const auto tokenizer = Open(name);
    const std::vector<uint32_t> crcs = of["crcs"];
    const std::vector<std::vector<uint32_t>> ids = of["ids"];
    REQUIRE(crcs.size() == texts.size());
    // Twice: out of the cache of words, too.
    for (int round = 0; round < 2; ++round) {
      for (size_t i = 0; i < texts.size(); ++i) {
        INFO(name << ", text " << i << ": " << texts[i]);
        const auto found = IdsOf(*tokenizer, texts[i]);
        if (i < kShown) CHECK(found == ids[i]);
        CHECK(CrcOf(found) == crcs[i]);
      }
    }
  }
}

TEST_CASE("models of SentencePiece give the library's texts", "[text]") {
  for (const auto& [name, of] : Cases()["models"].items()) {
    const auto tokenizer = Open(name);
    const std::vector<std::vector<uint32_t>> ids = of["ids"];
    const std::vector<std::string> decoded = of["decoded"];
    REQUIRE(ids.size() == decoded.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      std::string text;
      INFO(name << ", ids " << i << ": " << nlohmann::json(ids[i]).dump());
      REQUIRE(tokenizer->Decode(ids[i], true, false, &text).ok());
      CHECK(text == decoded[i]);
    }
  }
}

TEST_CASE("each code point is cut as SentencePiece cuts it", "[text]") {
  for (const auto& [name, of] : Cases()["models"].items()) {
    const auto tokenizer = Open(name);
    const std::vector<uint32_t> expected = of["code_points"];
    REQUIRE(expected.size() == std::size(kBlocks));
    for (size_t i = 0; i < expected.size(); ++i) {
      INFO(name << ", code points from " << kBlocks[i] * kBlock << " on");
      CHECK(CrcOf(IdsOf(*tokenizer, CodePointText(kBlocks[i]))) == expected[i]);
    }
  }
}

TEST_CASE("sums of a long text are rounded as SentencePiece rounds them", "[text]") {
  std::string text;
  for (int i = 0; i < 8000; ++i) text += "III IIII IIIII aaaa lll sss ";
  for (const auto& [name, of] : Cases()["models"].items()) {
    INFO(name);
    CHECK(CrcOf(IdsOf(*Open(name), text)) == of["long"].get<uint32_t>());
  }
}

TEST_CASE("runs behind user-defined symbols are cut as SentencePiece cuts them", "[text]") {
  const auto cases = nlohmann::json::parse(testing::ReadGolden("sentencepiece/symbols.json"));
  std::vector<std::string> texts;
  for (const auto& runs : cases["texts"]) {
    std::string& text = texts.emplace_back();
    for (const auto& run : runs)
      for (uint32_t i = 0; i < run[1].get<uint32_t>(); ++i) text += run[0].get<std::string>();
  }
  for (const auto& [name, of] : cases["models"].items()) {
    const auto tokenizer = Open("symbols_" + name);
    const std::vector<uint32_t> crcs = of;
    REQUIRE(crcs.size() == texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      INFO(name << ", text " << i << ": " << cases["texts"][i].dump());
      CHECK(CrcOf(IdsOf(*tokenizer, texts[i])) == crcs[i]);
    }
  }
}

TEST_CASE("a model of SentencePiece keeps bytes and control symbols where it is asked to",
          "[text]") {
  const auto tokenizer = Open("bpe_bytes");
  std::vector<uint32_t> ids = IdsOf(*tokenizer, "a\u4fffb");
  const EncodeOptions three = {.max_length = 3};
  CHECK(IdsOf(*tokenizer, "a\u4fffb", three) ==
        std::vector<uint32_t>(ids.begin(), ids.begin() + 3));
  // 0xe4 0xbf 0xbf stand in the midst; without the last of them there is no character.
  REQUIRE(ids.size() >= 5);
  size_t last = 0;
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    REQUIRE(tokenizer->Decode(absl::MakeSpan(&ids[i], 1), true, true, &text).ok());
    if (text == "\xbf") last = i;
  }
  REQUIRE(last > 0);
  ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(last));
  REQUIRE(tokenizer->Decode(ids, true, true, &text).ok());
  CHECK(text ==
        "a\xe4\xbf"
        "b");
  REQUIRE(tokenizer->Decode(ids, true, false, &text).ok());
  CHECK(text ==
        "a\ufffd\ufffd"
        "b");
  // <s> is a control symbol.
  REQUIRE(tokenizer->Decode({1, ids[0]}, false, false, &text).ok());
  CHECK(text.compare(0, 3, "<s>") == 0);
  REQUIRE(tokenizer->Decode({1}, true, false, &text).ok());
  CHECK(text.empty());
  const absl::Status status = tokenizer->Decode({5, 1'000'000}, true, false, &text);
  CHECK(status.message() == "expected ids of the tokenizer, found 1000000 at 1 of 2");
}

TEST_CASE("long texts of SentencePiece come back whole", "[text]") {
  // Longer than the steps that are kept at a time.
  for (const char* const name : {"unigram", "bpe_bytes", "bpe_across", "characters"}) {
    const auto tokenizer = Open(name);
    const std::string part = " qzx";
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += part;
    INFO(name);
    const auto once = IdsOf(*tokenizer, part + part + part);
    const auto ids = IdsOf(*tokenizer, text);
    REQUIRE(once.size() >= 3);
    std::string back, wanted;
    REQUIRE(tokenizer->Decode(ids, true, false, &back).ok());
    REQUIRE(tokenizer->Decode(once, true, false, &wanted).ok());
    CHECK(back.size() >= text.size() - 1);
    CHECK(back.compare(0, wanted.size(), wanted) == 0);
    CHECK(back.compare(back.size() - wanted.size(), wanted.size(), wanted) == 0);
  }
}

TEST_CASE("models that make little sense are refused where sentencepiece refuses them") {
  const auto cases = nlohmann::json::parse(testing::ReadGolden("sentencepiece/refusals.json"));
  const std::string run(7'999, 'a');
  int refused = 0;
  for (const auto& model : cases["models"]) {
    std::string file;
    for (const auto& piece : model["pieces"]) {
      std::string text;
      for (int i = 0; i < piece[1]; ++i) text += piece[0].get<std::string>();
      file += testing::SentencePiece(text, piece[3], std::stof(piece[2].get<std::string>()));
    }
    file += testing::Field(2, testing::Number(3, model["kind"]));
    const auto tokenizer = MakeSentencePieceTokenizer(file);
    INFO(model["name"] << ": " << tokenizer.status().ToString());
    CHECK(tokenizer.ok() != model["ids"].is_null());
    refused += model["ids"].is_null();
    if (!tokenizer.ok() || model["ids"].is_null()) continue;
    for (size_t i = 0; i < cases["texts"].size(); ++i)
      CHECK(IdsOf(**tokenizer, cases["texts"][i]) == model["ids"][i].get<std::vector<uint32_t>>());
    CHECK(IdsOf(**tokenizer, run).size() == model["ids"].back()[0]);
    const auto& back = model["back"];
    for (size_t i = 0; i < back.size(); ++i) {
      std::string text;
      const uint32_t ids[] = {2, static_cast<uint32_t>(model["pieces"].size() - back.size() + i)};
      CHECK((*tokenizer)->Decode(ids, true, false, &text).ok());
      CHECK(text == back[i]);
    }
  }
  CHECK(refused > 50);
}

}  // namespace
}  // namespace penstock::text
