// Ids and texts are those of `tokenizers` and `tiktoken` (tests/golden/make_tokenizer_goldens.py).
#include <zlib.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "server/text/tokenizer.h"
#include "server/text/unicode/utf8.h"
#include "tests/support/catch.h"
#include "tests/support/tree.h"

namespace penstock::text {
namespace {

const std::string kFolder = testing::InTree("tests/golden/tokenizers/");
constexpr uint32_t kBlock = 4096;
// As the script has them.
constexpr uint32_t kBlocks[] = {0, 1, 2, 3, 0xa, 0xf, 0x10, 0x11, 0x1d, 0x1f};

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

const nlohmann::json& Cases() {
  static const auto& cases =
      *new nlohmann::json(nlohmann::json::parse(Slurp(kFolder + "cases.json")));
  return cases;
}

// "gpt2", or "small.tiktoken cl100k_base".
std::unique_ptr<Tokenizer> Open(const std::string& name, const nlohmann::json& of) {
  const std::string file = name.substr(0, name.find(' '));
  auto tokenizer = of.contains("pattern") ? MakeRankTokenizer(Slurp(kFolder + file),
                                                              {of["pattern"].get<std::string>()})
                                          : MakeJsonTokenizer(Slurp(kFolder + file + ".json"));
  INFO(name << ": " << tokenizer.status().ToString());
  REQUIRE(tokenizer.ok());
  return *std::move(tokenizer);
}

std::vector<uint32_t> IdsOf(const Tokenizer& tokenizer, const std::string& text,
                            const EncodeOptions& options) {
  const auto scratch = tokenizer.Borrow();
  const absl::Status status = tokenizer.Encode(text, options, *scratch);
  INFO(status.ToString());
  REQUIRE(status.ok());
  const auto ids = (*scratch).ids.span();
  return {ids.begin(), ids.end()};
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

TEST_CASE("tokenizers give the libraries' ids", "[text]") {
  const std::vector<std::string> texts = Cases()["texts"];
  for (const auto& [name, of] : Cases()["tokenizers"].items()) {
    const auto tokenizer = Open(name, of);
    const nlohmann::json& ids = of["ids"];
    const std::vector<std::vector<uint32_t>> plain = of["plain"];
    REQUIRE(ids.size() == texts.size());
    // Twice: out of the cache of words, too.
    for (int round = 0; round < 2; ++round) {
      for (size_t i = 0; i < texts.size(); ++i) {
        INFO(name << ", text " << i << ": " << texts[i]);
        if (ids[i].is_null()) continue;
        CHECK(IdsOf(*tokenizer, texts[i], {}) == ids[i].get<std::vector<uint32_t>>());
        if (i < plain.size())
          CHECK(IdsOf(*tokenizer, texts[i], {.add_special_tokens = false}) == plain[i]);
      }
    }
  }
}

// make_unigram_score_goldens.py.
TEST_CASE("a score is the double that the library makes of its digits", "[text]") {
  const auto cases = nlohmann::json::parse(Slurp(kFolder + "score_cases.json"));
  const auto tokenizer = MakeJsonTokenizer(Slurp(kFolder + "scores.json"));
  REQUIRE(tokenizer.ok());
  const std::vector<std::string> texts = cases["texts"];
  const std::vector<std::vector<uint32_t>> ids = cases["ids"];
  REQUIRE(texts.size() == ids.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    INFO(texts[i]);
    CHECK(IdsOf(**tokenizer, texts[i], {}) == ids[i]);
  }
}

TEST_CASE("tokenizers give the libraries' texts", "[text]") {
  for (const auto& [name, of] : Cases()["tokenizers"].items()) {
    const auto tokenizer = Open(name, of);
    const nlohmann::json& ids = of["ids"];
    const std::vector<std::string> decoded = of["decoded"];
    for (size_t i = 0; i < decoded.size(); ++i) {
      std::string text;
      INFO(name << ", text " << i);
      if (ids[i].is_null()) continue;
      const std::vector<uint32_t> one = ids[i];
      REQUIRE(tokenizer->Decode(one, true, false, &text).ok());
      CHECK(text == decoded[i]);
    }
  }
}

TEST_CASE("each code point is cut as the libraries cut it", "[text]") {
  for (const auto& [name, of] : Cases()["tokenizers"].items()) {
    if (!of.contains("code_points")) continue;
    const auto tokenizer = Open(name, of);
    const std::vector<uint32_t> expected = of["code_points"];
    REQUIRE(expected.size() == std::size(kBlocks));
    for (uint32_t i = 0; i < expected.size(); ++i) {
      const uint32_t block = kBlocks[i];
      const EncodeOptions options = {.add_special_tokens = false, .max_length = int64_t{1} << 28};
      const std::vector<uint32_t> ids = IdsOf(*tokenizer, CodePointText(block), options);
      INFO(name << ", code points from " << block * kBlock << " on");
      CHECK(crc32(0, reinterpret_cast<const Bytef*>(ids.data()),
                  static_cast<uInt>(ids.size() * sizeof(uint32_t))) == expected[i]);
    }
  }
}

TEST_CASE("a text may be cut short, what stands around it included", "[text]") {
  const auto tokenizer = Open("llama3", Cases()["tokenizers"]["llama3"]);
  const auto whole = IdsOf(*tokenizer, "one two three four five", {});
  REQUIRE(whole.size() > 4);
  const std::vector<uint32_t> three(whole.begin(), whole.begin() + 3);
  CHECK(IdsOf(*tokenizer, "one two three four five", {.max_length = 3}) == three);
  CHECK(IdsOf(*tokenizer, "", {.max_length = 1}) == std::vector<uint32_t>{0});
}

TEST_CASE("words of any length merge as short ones do", "[text]") {
  // No byte pair merges across the end of a run, so that a long word of them has the ids of the short one again and again.
  const auto tokenizer = Open("gpt2", Cases()["tokenizers"]["gpt2"]);
  const EncodeOptions plain = {.add_special_tokens = false};
  const std::string part = "qzx";
  const auto once = IdsOf(*tokenizer, part, plain);
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += part;
  const auto ids = IdsOf(*tokenizer, text, plain);
  REQUIRE(ids.size() == once.size() * 400'000);
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] != once[i % once.size()]) FAIL_CHECK("id " << i);
}

}  // namespace
}  // namespace penstock::text
