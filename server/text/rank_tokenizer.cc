// The rank files of tiktoken: a token in base64 and its rank on each line.
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "base/utf8.h"
#include "server/text/scan/published.h"
#include "server/text/scan/regex.h"
#include "server/text/tokenizer.h"
#include "server/text/unicode/utf8.h"

namespace penstock::text {
namespace {

// Of a token, as StopLook counts it.
constexpr uint64_t kTokenWork = 64;

class RankTokenizer final : public Tokenizer {
 public:
  RankTokenizer(std::unique_ptr<ByteBpe> bpe, absl::flat_hash_map<uint32_t, std::string> tokens,
                const PublishedPattern* published, std::unique_ptr<Regex> regex)
      : bpe_(std::move(bpe)),
        tokens_(std::move(tokens)),
        published_(published),
        regex_(std::move(regex)) {}

  absl::Status Encode(std::string_view text, const EncodeOptions& options,
                      Scratch& scratch) const override {
    scratch.ids.Clear();
    if (published_ != nullptr) {
      published_->encode(*bpe_, text, scratch.cache, scratch.ids);
    } else {
      const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
      const absl::Status status = WithinRegexSteps([&] {
        regex_->ForEachMatch(text, [&](size_t from, size_t to) {
          bpe_->Encode(bytes + from, to - from, bytes + text.size(), scratch.cache, scratch.ids);
        });
        return absl::OkStatus();
      });
      if (!status.ok()) return status;
    }
    if (options.max_length > 0) scratch.ids.Cut(static_cast<size_t>(options.max_length));
    return absl::OkStatus();
  }

  absl::Status Decode(absl::Span<const uint32_t> ids, bool, bool keep_bytes,
                      std::string* text) const override {
    text->clear();
    StopLook look;
    for (size_t i = 0; i < ids.size(); ++i) {
      look.Did(kTokenWork);
      const auto found = tokens_.find(ids[i]);
      if (found == tokens_.end())
        return absl::DataLossError(absl::StrCat("expected ids of the tokenizer, found ", ids[i],
                                                " at ", i, " of ", ids.size()));
      *text += found->second;
    }
    if (!keep_bytes) *text = ReplaceNoUtf8(*text);
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<ByteBpe> bpe_;
  const absl::flat_hash_map<uint32_t, std::string> tokens_;
  const PublishedPattern* const published_;  // or null: regex_
  const std::unique_ptr<Regex> regex_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeRankTokenizer(std::string_view file,
                                                             const RankFileOptions& options) {
  const PublishedPattern* published = FindPatternByName(options.pattern);
  if (published == nullptr) published = FindPublishedPattern(options.pattern);
  std::unique_ptr<Regex> regex;
  if (published == nullptr) {
    if (options.pattern.empty()) {
      return absl::InvalidArgumentError(
          "pattern: expected the name of a published pattern (gpt2, r50k_base, p50k_base, "
          "cl100k_base, o200k_base, llama3, qwen2) or a regular "
          "expression, as a file of ranks has none");
    }
    if (options.pattern.find("\\w") != std::string::npos ||
        options.pattern.find("\\W") != std::string::npos) {
      return absl::InvalidArgumentError(
          "pattern: expected no \\w, of which the libraries have several; [\\p{L}\\p{M}\\p{N}] "
          "says it");
    }
    auto made = Regex::Make(options.pattern, Regex::Anchors::kText);
    if (!made.ok())
      return absl::InvalidArgumentError(absl::StrCat("pattern: ", made.status().message()));
    regex = *std::move(made);
  }
  absl::flat_hash_map<std::string, uint32_t> ranks;
  absl::flat_hash_map<uint32_t, std::string> tokens;
  size_t line = 0;
  for (size_t at = 0; at < file.size();) {
    const size_t end = std::min(file.find('\n', at), file.size());
    absl::string_view text(file.data() + at, end - at);
    at = end + 1;
    ++line;
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    if (text.empty()) continue;
    const size_t space = text.find(' ');
    std::string token;
    uint32_t rank = 0;
    if (space == absl::string_view::npos || !absl::Base64Unescape(text.substr(0, space), &token) ||
        token.empty() || !absl::SimpleAtoi(text.substr(space + 1), &rank) || rank > INT32_MAX) {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", line,
          ": expected a token in base64, a space and a rank below 2147483648, found \"",
          absl::CHexEscape(text.substr(0, 60)), "\""));
    }
    if (!tokens.emplace(rank, token).second)
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", line, ": expected another rank than any other token has, found ", rank));
    if (!ranks.emplace(std::move(token), rank).second)
      return absl::InvalidArgumentError(
          absl::StrCat("line ", line, ": expected tokens that differ, found one again"));
  }
  auto bpe = ByteBpe::FromRanks(std::move(ranks));
  if (!bpe.ok()) return bpe.status();
  return std::make_unique<RankTokenizer>(*std::move(bpe), std::move(tokens), published,
                                         std::move(regex));
}

}  // namespace penstock::text
