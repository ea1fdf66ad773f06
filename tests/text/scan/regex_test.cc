// Regular expressions of tokenizers' files: what PCRE2 has to be told to match as the libraries do,
// and what it cannot.
//
// Goldens: tokenizers 0.23.3, pre_tokenizers.Split(Regex(PATTERN),
// "isolated").pre_tokenize_str(TEXT).
#include "server/text/scan/regex.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/text/tokenizer.h"
#include "tests/support/catch.h"

namespace penstock::text {
namespace {

using Matches = std::vector<std::pair<size_t, size_t>>;

Matches MatchesOf(std::string_view pattern, Regex::Anchors anchors, std::string_view text) {
  const auto regex = Regex::Make(pattern, anchors);
  INFO(regex.status().ToString());
  REQUIRE(regex.ok());
  Matches matches;
  (*regex)->ForEachMatch(text, [&](size_t from, size_t to) { matches.emplace_back(from, to); });
  return matches;
}

TEST_CASE("a line has ends in a tokenizer.json, and only the text in a file of ranks", "[text]") {
  constexpr auto kLines = Regex::Anchors::kLines, kText = Regex::Anchors::kText;
  CHECK(MatchesOf(R"(\s+$)", kLines, "a  \nb  c  ") == Matches{{1, 3}, {8, 10}});
  CHECK(MatchesOf(R"(\s+$)", kText, "a  \nb  c  ") == Matches{{8, 10}});
  CHECK(MatchesOf("^a", kLines, "a\nab a") == Matches{{0, 1}, {2, 3}});
  CHECK(MatchesOf("^a", kText, "a\nab a") == Matches{{0, 1}});
  CHECK(MatchesOf("a$", kLines, "xa\n") == Matches{{1, 2}});
  CHECK(MatchesOf("a$", kText, "xa\n").empty());
}

TEST_CASE("a match may be longer than the stack of machine code allows", "[text]") {
  const std::string word(1'000'000, 'a');
  CHECK(MatchesOf("(?:a|(b))+c?", Regex::Anchors::kText, word) == Matches{{0, word.size()}});
}

TEST_CASE("what PCRE2 reads otherwise than the libraries is refused", "[text]") {
  const std::pair<std::string, std::string> cases[] = {
      {R"(a\h)", "found \\h at byte 1"},
      {"[a-z&&[^b]]", "found && in a class at byte 4"},
      {"[a[b]]", "found a class in a class at byte 2"},
      {"(?m:a.b)", "found the option m at byte 0"},
      {"x(?i-m)a", "found the option m at byte 1"},
  };
  for (const auto& [pattern, expected] : cases) {
    const absl::Status status = Regex::Make(pattern, Regex::Anchors::kLines).status();
    INFO(pattern << ": " << status.ToString());
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(status.message().find(expected) != std::string::npos);
  }
  for (const char* const pattern : {R"([\[\]&]+)", "[[:alpha:]]", "(?i:m)", "(?:m)", "(?=m)"}) {
    INFO(pattern);
    CHECK(Regex::Make(pattern, Regex::Anchors::kLines).ok());
  }
  CHECK(Regex::Make("(?m:a.b)", Regex::Anchors::kText).ok());
}

TEST_CASE("a match that takes too many steps is an error, in decoding and in added tokens as well",
          "[text]") {
  const std::string many(200, 'a');
  const std::string replace =
      R"({"type":"Replace","pattern":{"Regex":"(?:a|a)+[bc]"},"content":""})";
  const std::string start = R"({"version":"1.0",)";
  const std::string model =
      R"("model":{"type":"WordLevel","vocab":{"[UNK]":0,")" + many + R"(":1},"unk_token":"[UNK]"})";
  const auto decodes = MakeJsonTokenizer(start + R"("decoder":)" + replace + "," + model + "}");
  REQUIRE(decodes.ok());
  std::string text;
  CHECK((*decodes)->Decode({1}, false, false, &text).code() ==
        absl::StatusCode::kResourceExhausted);
  const auto adds =
      MakeJsonTokenizer(start + R"("normalizer":)" + replace +
                        R"(,"added_tokens":[{"id":1,"content":")" + many + R"("}],)" + model + "}");
  CHECK(adds.status().code() == absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace penstock::text
