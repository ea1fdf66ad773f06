// What a tokenizer's file asks for that is not there, or that makes no sense, is refused with its
// place in the file. Fault 21d.
#include <string>
#include <utility>

#include "base/utf8.h"
#include "server/text/tokenizer.h"
#include "server/text/unicode/utf8.h"
#include "tests/support/catch.h"

namespace penstock::text {
namespace {

std::string File(const std::string& more,
                 const std::string& model =
                     R"({"type":"WordLevel","vocab":{"a":0,"[UNK]":1},"unk_token":"[UNK]"})") {
  return R"({"version":"1.0",)" + more + (more.empty() ? "" : ",") + R"("model":)" + model + "}";
}

TEST_CASE("files that ask for what is not there are refused by name", "[text]") {
  const std::pair<std::string, std::string> cases[] = {
      {"", "expected a JSON document"},
      {"[]", "the document: expected an object, found an array of 0"},
      {R"({"version":"2.0"})", "version: expected \"1.0\", found \"2.0\""},
      {"{}", "model: expected an object, found null"},
      {File(R"("strange":1)"), "strange: expected no member of this name, found 1"},
      {File(R"("normalizer":{"type":"Nmt"})"), "normalizer.type: expected one of BertNormalizer, "},
      {File(R"("normalizer":{"type":"Precompiled"})"),
       "normalizer.precompiled_charsmap: expected a map of characters in base64, found null"},
      {File(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"a*"})"),
       "normalizer.precompiled_charsmap: expected a map of characters in base64"},
      {File(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"BAAA"})"),
       "normalizer.precompiled_charsmap: expected units of four bytes and replacements"},
      // One unit, and replacements that are no UTF-8.
      {File(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"BAAAAAAAAAD/AA=="})"),
       "normalizer.precompiled_charsmap: expected replacements in UTF-8, found other bytes"},
      // The value of the first unit is the place behind a character's first byte.
      {File(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"CAAAAAAFAAABAAAAw6kA"})"),
       "normalizer.precompiled_charsmap: expected replacements that begin with a character"},
      {File(R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Nmt"}]})"),
       "normalizer.normalizers[1].type: expected one of"},
      {File(R"("normalizer":{"type":"NFC","more":true})"),
       "normalizer.more: expected no member of this name, found true"},
      {File(R"("pre_tokenizer":{"type":"UnicodeScripts"})"),
       "pre_tokenizer.type: expected one of BertPreTokenizer, "},
      {File(
           R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated","invert":false})"),
       "pre_tokenizer.pattern.Regex: expected a regular expression"},
      {File(
           R"("pre_tokenizer":{"type":"Split","pattern":{"String":"a"},"behavior":"Odd","invert":false})"),
       "pre_tokenizer.behavior: expected one of Removed"},
      {File(R"("decoder":{"type":"CTC"})"), "decoder.type: expected one of BPEDecoder, "},
      {File(
           R"("post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"B"}}],"special_tokens":{}})"),
       "post_processor.single[0]: expected the sequence \"A\" once"},
      {File(R"("post_processor":{"type":"BertProcessing","sep":["x",-1],"cls":["y",1]})"),
       "post_processor.sep[1]: expected an integer from 0 to 2147483647, found -1"},
      {File(R"("padding":{"strategy":{"Fixed":9}})"),
       "padding.strategy: padding to a length is not supported"},
      {File(R"("truncation":{"max_length":0})"),
       "truncation.max_length: expected an integer from 1 on, found 0"},
      {File(R"("truncation":{"max_length":9,"strategy":"OnlySecond"})"),
       "truncation.strategy: expected one of LongestFirst, OnlyFirst"},
      {File(R"("added_tokens":[{"content":"x"}])"),
       "added_tokens[0].id: expected an id, found null"},
      {File(R"("added_tokens":[{"content":"a","id":7}])"),
       "added_tokens[0].id: expected the id that the vocabulary has for this token, found 7"},
      {File("", R"({"type":"WordLevel","vocab":{"a":0,"b":0}})"),
       "model.vocab.b: expected another id than any other token has, found 0"},
      {File("", R"({"type":"WordLevel","vocab":{"a":1e99}})"),
       "model.vocab.a: expected an integer from 0 to 2147483647"},
      {File("", R"({"type":"BPE","vocab":{"a":0,"b":1},"merges":["a b"]})"),
       "model.merges[0]: expected tokens of the vocabulary, which has no \"ab\""},
      {File("", R"({"type":"BPE","vocab":{"a":0},"merges":[["a"]]})"),
       "model.merges[0]: expected two tokens"},
      {File("", R"({"type":"BPE","vocab":{"a":0},"merges":[],"dropout":0.1})"),
       "model.dropout: leaving out merges by chance is not supported"},
      {File("", R"({"type":"Unigram","vocab":[["a",0]],"unk_id":1})"),
       "model.unk_id: expected one of the 1 tokens, found 1"},
      {File("", R"({"type":"Unigram","vocab":[["a"]]})"),
       "model.vocab[0]: expected an array of a token and its score"},
      {File("", R"({"type":"WordPiece","vocab":{},"max_input_chars_per_word":100000})"),
       "model.max_input_chars_per_word: expected at most 10000"},
      {File("", R"({"type":"Other"})"),
       "model.type: expected one of BPE, Unigram, WordLevel, WordPiece, found \"Other\""},
  };
  for (const auto& [file, expected] : cases) {
    const auto made = MakeJsonTokenizer(file);
    INFO(file << "\n" << made.status().ToString());
    CHECK(made.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(made.status().message().find(expected) == 0);
  }
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += R"({"type":"Sequence","normalizers":[)";
  CHECK_FALSE(MakeJsonTokenizer(File("\"normalizer\":" + deep)).ok());
  std::string nested;
  for (int i = 0; i < 40; ++i) nested += R"({"type":"Sequence","normalizers":[)";
  for (int i = 0; i < 40; ++i) nested += "]}";
  CHECK_FALSE(MakeJsonTokenizer(File("\"normalizer\":" + nested)).ok());
}

TEST_CASE("damaged files of ranks are refused by line", "[text]") {
  std::string all;
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (int byte = 0; byte < 256; ++byte)
    all += std::string{digits[byte >> 2], digits[(byte & 3) << 4]} + "== " + std::to_string(byte) +
           "\n";
  CHECK(MakeRankTokenizer(all, {"gpt2"}).ok());
  const std::pair<std::string, std::string> cases[] = {
      {"A\n", "line 1: expected a token in base64, a space and a rank"},
      {all + "YWI= x\n", "line 257: expected a token in base64"},
      {all + "YWI= 9999999999\n", "line 257: expected a token in base64"},
      {all + "YWI= 7\n", "line 257: expected another rank than any other token has, found 7"},
      {all + "YQ== 300\n", "line 257: expected tokens that differ"},
      {"YWI= 7\n", "expected a token for each byte, found none for byte 0"},
  };
  for (const auto& [file, expected] : cases) {
    const auto made = MakeRankTokenizer(file, {"gpt2"});
    INFO(made.status().ToString());
    CHECK(made.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(made.status().message().find(expected) == 0);
  }
  CHECK(MakeRankTokenizer(all, {""}).status().message().find(
            "pattern: expected the name of a published pattern") == 0);
  CHECK(MakeRankTokenizer(all, {"(a"})
            .status()
            .message()
            .find("pattern: expected a regular expression") == 0);
}

TEST_CASE("what is no UTF-8 is found and mended as Python does it", "[text]") {
  CHECK(FindInvalidUtf8("abcdefgh\xc3\xa9 \xf0\x9f\x98\x80") == std::string_view::npos);
  CHECK(FindInvalidUtf8("abcdefghi\xff") == 9);
  CHECK(FindInvalidUtf8("\xed\xa0\x80") == 0);
  CHECK(FindInvalidUtf8("\xc0\xaf") == 0);
  CHECK(FindInvalidUtf8("a\xf4\x90\x80\x80") == 1);
  const std::string bad = "\xef\xbf\xbd";
  CHECK(ReplaceNoUtf8("a\xff"
                      "b") == "a" + bad + "b");
  CHECK(ReplaceNoUtf8("\xe2\x82z\xf0\x9f\x98") == bad + "z" + bad);
  CHECK(ReplaceNoUtf8("\xed\xa0\x80") == bad + bad + bad);
}

}  // namespace
}  // namespace penstock::text
