#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "server/text/parts/parts.h"
#include "server/text/parts/vocabulary.h"
#include "server/text/unicode/utf8.h"

namespace penstock::text {
namespace {

// The longest token with which a word begins, then the longest with which the rest begins, and so
// on; a word that has none is unknown.
class WordPiece final : public Model {
 public:
  WordPiece(TokenTable tokens, std::string unknown, std::string prefix, uint32_t characters_max)
      : tokens_(std::move(tokens)),
        unknown_(std::move(unknown)),
        prefix_(std::move(prefix)),
        characters_max_(characters_max) {}

  absl::Status Encode(std::string_view word, WordCache& cache, IdBuffer& out) const override {
    return EncodeThrough(cache, word, out, [&](IdBuffer& ids) { return EncodeNew(word, ids); });
  }
  std::optional<uint32_t> IdOf(std::string_view token) const override {
    return tokens_.IdOf(token);
  }
  const std::string* TokenOf(uint32_t id) const override { return tokens_.TokenOf(id); }

 private:
  absl::Status EncodeNew(std::string_view word, IdBuffer& out) const {
    uint32_t characters = 0;
    for (size_t at = 0; at < word.size() && characters <= characters_max_; ++characters)
      at += CodePointBytes(static_cast<uint8_t>(word[at]));
    if (characters > characters_max_) return Unknown(out);
    const size_t before = out.size();
    std::string part;
    StopLook look;
    for (size_t from = 0; from < word.size();) {
      part = from == 0 ? std::string() : prefix_;
      const size_t lead = part.size();
      part.append(word.substr(from));
      std::optional<uint32_t> id;
      while (part.size() > lead && !(id = tokens_.IdOf(part))) {
        look.Did(part.size() + 16);
        do part.pop_back();
        while (part.size() > lead &&
               (static_cast<uint8_t>(word[from + part.size() - lead]) & 0xc0) == 0x80);
      }
      if (!id) {
        out.Cut(before);
        return Unknown(out);
      }
      out.Append(*id);
      from += part.size() - lead;
    }
    return absl::OkStatus();
  }

  absl::Status Unknown(IdBuffer& out) const {
    const auto id = tokens_.IdOf(unknown_);
    if (!id)
      return absl::DataLossError(
          absl::StrCat("the vocabulary has no token for unknown words, \"", unknown_, "\""));
    out.Append(*id);
    return absl::OkStatus();
  }

  const TokenTable tokens_;
  const std::string unknown_, prefix_;
  const uint32_t characters_max_;
};

absl::StatusOr<std::unique_ptr<Model>> Make(const JsonPart& json) {
  absl::Status status = json.OnlyMembers(
      {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
  std::string unknown = "[UNK]", prefix = "##";
  uint32_t characters_max = 100;
  if (status.ok()) status = json["unk_token"].Read(&unknown);
  if (status.ok()) status = json["continuing_subword_prefix"].Read(&prefix);
  if (status.ok()) status = json["max_input_chars_per_word"].ReadId(&characters_max);
  // A word is gone through once for each of its parts.
  if (status.ok() && characters_max > 10'000)
    status = json["max_input_chars_per_word"].Refuse("at most 10000");
  TokenTable tokens;
  if (status.ok()) status = tokens.Read(json["vocab"]);
  if (!status.ok()) return status;
  return std::make_unique<WordPiece>(std::move(tokens), std::move(unknown), std::move(prefix),
                                     characters_max);
}

const PartRegistration<Model> kWordPiece("WordPiece", Make);

}  // namespace
}  // namespace penstock::text
