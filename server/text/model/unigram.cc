#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "nlohmann/json.hpp"
#include "server/text/model/byte_tokens.h"
#include "server/text/parts/parts.h"
#include "server/text/parts/trie.h"
#include "server/text/parts/vocabulary.h"
#include "server/text/unicode/utf8.h"

namespace penstock::text {
namespace {

// The tokens whose scores have the greatest sum, by Viterbi's algorithm.
//
// Source: Kudo, Subword Regularization (2018).
class Unigram final : public Model {
 public:
  struct Token {
    std::string text;
    double score;
  };

  Unigram(std::vector<Token> tokens, std::optional<uint32_t> unknown, bool falls_back)
      : tokens_(std::move(tokens)), unknown_(unknown), falls_back_(falls_back) {
    double least = std::numeric_limits<double>::infinity();
    for (uint32_t id = 0; id < tokens_.size(); ++id) {
      least = std::min(least, tokens_[id].score);
      ids_[tokens_[id].text] = id;
    }
    for (const auto& [text, id] : ids_)
      if (!text.empty()) trie_.Add(text, id);
    unknown_score_ = least - kUnknownPenalty;
    bytes_ = FindByteTokens([&](std::string_view token) { return IdOf(token); });
  }

  absl::Status Encode(std::string_view word, WordCache& cache, IdBuffer& out) const override {
    return EncodeThrough(cache, word, out, [&](IdBuffer& ids) { return EncodeNew(word, ids); });
  }
  std::optional<uint32_t> IdOf(std::string_view token) const override {
    const auto found = ids_.find(absl::string_view(token.data(), token.size()));
    if (found == ids_.end()) return std::nullopt;
    return found->second;
  }
  const std::string* TokenOf(uint32_t id) const override {
    return id < tokens_.size() ? &tokens_[id].text : nullptr;
  }

 private:
  static constexpr double kUnknownPenalty = 10;
  static constexpr size_t kNowhere = ~size_t{0};

  // The best way to a place in the word.
  struct Step {
    double score = 0;
    size_t from = kNowhere;
    bool is_unknown = false;
  };

  absl::Status EncodeNew(std::string_view word, IdBuffer& out) const {
    std::vector<Step> steps(word.size() + 1);
    StopLook look;
    for (size_t at = 0; at < word.size();) {
      look.Did(256);
      const size_t bytes = CodePointBytes(static_cast<uint8_t>(word[at]));
      const double score = steps[at].score;
      bool has_single = false;
      const auto go = [&](size_t to, double with, bool is_unknown) {
        Step& step = steps[to];
        if (step.from == kNowhere || with > step.score) step = {with, at, is_unknown};
      };
      trie_.ForEachPrefix(word.substr(at), [&](size_t length, uint32_t id) {
        go(at + length, tokens_[id].score + score, unknown_ && id == *unknown_);
        has_single |= length == bytes;
      });
      if (!has_single) {
        if (!unknown_)
          return absl::DataLossError("the vocabulary has no token for unknown characters (unk_id)");
        go(at + bytes, unknown_score_ + score, true);
      }
      at += bytes;
    }
    // Backwards; what is unknown side by side is one.
    std::vector<std::string_view> parts;
    for (size_t end = word.size(); end > 0;) {
      size_t from = steps[end].from;
      if (steps[end].is_unknown)
        while (from > 0 && steps[from].is_unknown) from = steps[from].from;
      parts.push_back(word.substr(from, end - from));
      end = from;
    }
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (const auto id = IdOf(*part)) {
        out.Append(*id);
      } else if (!falls_back_ || !AppendBytes(bytes_, *part, out)) {
        if (!unknown_)
          return absl::DataLossError("the vocabulary has no token for unknown characters (unk_id)");
        out.Append(*unknown_);
      }
    }
    return absl::OkStatus();
  }

  const std::vector<Token> tokens_;
  const std::optional<uint32_t> unknown_;
  const bool falls_back_;
  absl::flat_hash_map<std::string, uint32_t> ids_;
  Trie trie_;
  ByteTokens bytes_;
  double unknown_score_ = 0;
};

absl::StatusOr<std::unique_ptr<Model>> Make(const JsonPart& json) {
  absl::Status status = json.OnlyMembers({"type", "unk_id", "vocab", "byte_fallback"});
  bool falls_back = false;
  if (status.ok()) status = json["byte_fallback"].Read(&falls_back);
  std::optional<uint32_t> unknown;
  if (status.ok() && !json["unk_id"].is_null()) status = json["unk_id"].ReadId(&unknown.emplace());
  if (!status.ok()) return status;
  const JsonPart vocabulary = json["vocab"];
  if (!vocabulary.value().is_array()) return vocabulary.Refuse("an array");
  std::vector<Unigram::Token> tokens;
  for (size_t i = 0; i < vocabulary.value().size(); ++i) {
    const nlohmann::json& token = vocabulary.value()[i];
    if (!token.is_array() || token.size() != 2 || !token[0].is_string() || !token[1].is_number())
      return vocabulary.At(i).Refuse("an array of a token and its score");
    tokens.push_back({token[0].get<std::string>(), token[1].get<double>()});
  }
  if (unknown && *unknown >= tokens.size())
    return json["unk_id"].Refuse(absl::StrCat("one of the ", tokens.size(), " tokens"));
  return std::make_unique<Unigram>(std::move(tokens), unknown, falls_back);
}

const PartRegistration<Model> kUnigram("Unigram", Make);

}  // namespace
}  // namespace penstock::text
