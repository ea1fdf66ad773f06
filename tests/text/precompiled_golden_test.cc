// Ids are those of `tokenizers` with maps of SentencePiece
// (tests/golden/make_precompiled_goldens.py).
#include <zlib.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "nlohmann/json.hpp"
#include "server/text/sentencepiece/model_file.h"
#include "server/text/tokenizer.h"
#include "server/text/unicode/utf8.h"
#include "tests/support/catch.h"
#include "tests/support/tree.h"

namespace penstock::text {
namespace {

const std::string kFolder = testing::InTree("tests/golden/");
constexpr uint32_t kBlock = 4096;
// As make_tokenizer_goldens.py has them.
constexpr uint32_t kBlocks[] = {0, 1, 2, 3, 0xa, 0xf, 0x10, 0x11, 0x1d, 0x1f};

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

const nlohmann::json& Cases() {
  static const auto& cases = *new nlohmann::json(
      nlohmann::json::parse(Slurp(kFolder + "tokenizers/precompiled_cases.json")));
  return cases;
}

// Puts the map of a model in the place of its name.
void PutMap(nlohmann::json& normalizer) {
  if (!normalizer.contains("precompiled_charsmap")) return;
  const std::string name = normalizer["precompiled_charsmap"];
  if (name.size() > 100) return;
  const auto model = ReadSentencePieceFile(Slurp(kFolder + "sentencepiece/" + name));
  REQUIRE(model.ok());
  std::string text;
  absl::Base64Escape(model->rules.charsmap, &text);
  normalizer["precompiled_charsmap"] = text;
}

std::unique_ptr<Tokenizer> Open(const nlohmann::json& of) {
  nlohmann::json spec = of["spec"];
  nlohmann::json& normalizer = spec["normalizer"];
  PutMap(normalizer);
  if (normalizer.contains("normalizers")) {
    for (nlohmann::json& part : normalizer["normalizers"]) PutMap(part);
  }
  auto tokenizer = MakeJsonTokenizer(spec.dump());
  INFO(tokenizer.status().ToString());
  REQUIRE(tokenizer.ok());
  return *std::move(tokenizer);
}

std::vector<uint32_t> IdsOf(const Tokenizer& tokenizer, const std::string& text) {
  const auto scratch = tokenizer.Borrow();
  const absl::Status status = tokenizer.Encode(text, {}, *scratch);
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
    text += x + "\u0301 a" + x + " \u0600" + x + "a\r\n" + x + "\u200d\u263a\u0301a" + x +
            "\u0300 " + x + "\u094d\u0915\u0301 \u1100" + x + "\u0301 " + x + "\u11a8\u0301\n";
  }
  return text;
}

TEST_CASE("maps of SentencePiece change texts as the library has it", "[text]") {
  const std::vector<std::string> texts = Cases()["texts"];
  for (const auto& [name, of] : Cases()["tokenizers"].items()) {
    const auto tokenizer = Open(of);
    const std::vector<uint32_t> crcs = of["crcs"];
    const std::vector<std::vector<uint32_t>> shown = of["ids"];
    REQUIRE(crcs.size() == texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      INFO(name << ", text " << i << ": " << texts[i]);
      const std::vector<uint32_t> ids = IdsOf(*tokenizer, texts[i]);
      if (i < shown.size()) CHECK(ids == shown[i]);
      CHECK(CrcOf(ids) == crcs[i]);
    }
  }
}

TEST_CASE("maps of SentencePiece change each code point as the library has it", "[text]") {
  for (const auto& [name, of] : Cases()["tokenizers"].items()) {
    const auto tokenizer = Open(of);
    const std::vector<uint32_t> expected = of["code_points"];
    REQUIRE(expected.size() == std::size(kBlocks));
    for (size_t i = 0; i < expected.size(); ++i) {
      INFO(name << ", code points from " << kBlocks[i] * kBlock << " on");
      CHECK(CrcOf(IdsOf(*tokenizer, CodePointText(kBlocks[i]))) == expected[i]);
    }
  }
}

}  // namespace
}  // namespace penstock::text
