// Tokenizers look for a stop all over a long text, and all over many ids (base/stop_flag.h).
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "server/text/tokenizer.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/stops_soon.h"

namespace penstock::text {
namespace {

std::unique_ptr<Tokenizer> Open(const std::string& name) {
  const std::string file = testing::ReadGolden(name.substr(0, name.find(' ')));
  auto tokenizer = absl::EndsWith(name, ".json") ? MakeJsonTokenizer(file)
                   : absl::EndsWith(name, ".model")
                       ? MakeSentencePieceTokenizer(file)
                       : MakeRankTokenizer(file, {name.substr(name.find(' ') + 1)});
  INFO(name << ": " << tokenizer.status().ToString());
  REQUIRE(tokenizer.ok());
  return *std::move(tokenizer);
}

std::string LongText() {
  const std::string part =
      "Words, numbers 12 3,456.78; signs!? \u041f\u0440\u0438\u0432\u0435\u0442 e\u0301\u00c5 "
      "\u4f60\u597d\uff0c and\tmore\n  of def f(x):\n    return {'a': [x, 1.5e-3]}\n";
  std::string text;
  while (text.size() < (size_t{2} << 20)) text += part;
  return text;
}

TEST_CASE("fault 35: tokenizers look for a stop all over a text and all over ids") {
  const char* const names[] = {
      "tokenizers/bert.json",
      "tokenizers/clip.json",
      "tokenizers/digits.json",
      "tokenizers/gpt2.json",
      "tokenizers/llama2.json",
      "tokenizers/llama3.json",
      "tokenizers/other.json",
      "tokenizers/unigram.json",
      "tokenizers/words.json",
      "tokenizers/small.tiktoken cl100k_base",
      "tokenizers/small.tiktoken \\p{L}+|\\P{L}",
      "sentencepiece/bpe_bytes.model",
      "sentencepiece/characters.model",
      "sentencepiece/unigram.model",
      "sentencepiece/words.model",
  };
  const std::string text = LongText();
  for (const char* const name : names) {
    DYNAMIC_SECTION(name) {
      const auto tokenizer = Open(name);
      std::vector<uint32_t> ids;
      test::CheckStopsSoon([&] {
        const auto scratch = tokenizer->Borrow();
        // Not inside of a macro, which would take Stopped for a failure.
        const absl::Status status = tokenizer->Encode(text, {}, *scratch);
        REQUIRE(status.ok());
        ids.assign((*scratch).ids.span().begin(), (*scratch).ids.span().end());
      });
      // Some make few ids of a text. Ranks of tiktoken are put together in 15 ns each.
      const std::vector<uint32_t> once = ids;
      const size_t wanted = size_t{1} << (absl::StrContains(name, "tiktoken") ? 23 : 20);
      while (!once.empty() && ids.size() < wanted) ids.insert(ids.end(), once.begin(), once.end());
      test::CheckStopsSoon([&] {
        std::string back;
        const absl::Status status = tokenizer->Decode(ids, false, false, &back);
        INFO(status.ToString());
        REQUIRE(status.ok());
      });
    }
  }
}

}  // namespace
}  // namespace penstock::text
