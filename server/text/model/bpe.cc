#include <queue>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "nlohmann/json.hpp"
#include "server/text/model/byte_tokens.h"
#include "server/text/parts/byte_letters.h"
#include "server/text/parts/parts.h"
#include "server/text/parts/vocabulary.h"
#include "server/text/unicode/utf8.h"

namespace penstock::text {
namespace {

struct Options {
  std::string unknown, prefix, suffix;
  bool fuses_unknown = false, falls_back = false, ignores_merges = false;
};

struct MergeOf {
  uint32_t rank, id;
};
uint64_t PairOf(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }

// Byte pair encoding of characters.
class Bpe final : public Model {
 public:
  Bpe(Options options, TokenTable tokens, std::vector<ByteBpe::Merge> merges)
      : options_(std::move(options)), tokens_(std::move(tokens)) {
    bytes_ = FindByteTokens([&](std::string_view token) { return tokens_.IdOf(token); });
    ByteBpe::ByteIds letters;
    bool all = options_.prefix.empty() && options_.suffix.empty();
    for (int byte = 0; byte < 256; ++byte) {
      const auto id = tokens_.IdOf(ByteLetters()[byte]);
      all &= id.has_value();
      letters[byte] = id.value_or(0);
    }
    if (all) {
      absl::flat_hash_map<std::string, uint32_t> whole;
      for (const auto& [token, id] : tokens_.ids()) {
        std::string bytes;
        if (options_.ignores_merges && AppendBytesOf(token, &bytes))
          whole.emplace(std::move(bytes), id);
      }
      byte_bpe_ = ByteBpe::FromMerges(letters, merges, std::move(whole));
    }
    uint32_t rank = 0;
    for (const ByteBpe::Merge& merge : merges)
      merges_[PairOf(merge.left, merge.right)] = {rank++, merge.id};
  }

  absl::Status Encode(std::string_view word, WordCache& cache, IdBuffer& out) const override {
    return EncodeThrough(cache, word, out, [&](IdBuffer& ids) { return EncodeNew(word, ids); });
  }
  std::optional<uint32_t> IdOf(std::string_view token) const override {
    return tokens_.IdOf(token);
  }
  const std::string* TokenOf(uint32_t id) const override { return tokens_.TokenOf(id); }
  const ByteBpe* byte_bpe() const override { return byte_bpe_.get(); }

 private:
  absl::Status EncodeNew(std::string_view word, IdBuffer& out) const {
    if (options_.ignores_merges) {
      if (const auto id = tokens_.IdOf(word)) {
        out.Append(*id);
        return absl::OkStatus();
      }
    }
    IdBuffer symbols;
    if (absl::Status status = Symbols(word, symbols); !status.ok()) return status;
    Merge(symbols.span(), out);
    return absl::OkStatus();
  }

  // The ids of the characters.
  absl::Status Symbols(std::string_view word, IdBuffer& out) const {
    bool was_unknown = false;
    StopLook look;
    for (size_t at = 0; at < word.size();) {
      const size_t bytes = CodePointBytes(static_cast<uint8_t>(word[at]));
      const std::string_view plain = word.substr(at, bytes);
      std::string name = at == 0 ? std::string(plain) : options_.prefix + std::string(plain);
      at += bytes;
      look.Did(64);
      if (at == word.size()) name += options_.suffix;
      if (const auto id = tokens_.IdOf(name)) {
        out.Append(*id);
        was_unknown = false;
        continue;
      }
      if (options_.falls_back && AppendBytes(bytes_, name, out)) {
        was_unknown = false;
        continue;
      }
      // Without a token for what is unknown it goes, as the library has it.
      if (options_.unknown.empty()) continue;
      if (was_unknown && options_.fuses_unknown) continue;
      const auto id = tokens_.IdOf(options_.unknown);
      if (!id)
        return absl::DataLossError(absl::StrCat(
            "the vocabulary has no token for unknown characters, \"", options_.unknown, "\""));
      out.Append(*id);
      was_unknown = true;
    }
    return absl::OkStatus();
  }

  void Merge(absl::Span<const uint32_t> ids, IdBuffer& out) const {
    struct Symbol {
      uint32_t id;
      int32_t before, behind;
      bool gone;
    };
    struct Waiting {
      uint32_t rank, at, id;
      uint64_t pair;
      bool operator<(const Waiting& other) const {
        return rank != other.rank ? rank > other.rank : at > other.at;
      }
    };
    const auto count = static_cast<int32_t>(ids.size());
    std::vector<Symbol> symbols(ids.size());
    for (int32_t i = 0; i < count; ++i)
      symbols[i] = {ids[i], i - 1, i + 1 < count ? i + 1 : -1, false};
    std::priority_queue<Waiting> waiting;
    const auto wait_for = [&](int32_t at) {
      const uint64_t pair = PairOf(symbols[at].id, symbols[symbols[at].behind].id);
      const auto found = merges_.find(pair);
      if (found != merges_.end())
        waiting.push({found->second.rank, static_cast<uint32_t>(at), found->second.id, pair});
    };
    StopLook look;
    for (int32_t i = 0; i + 1 < count; ++i) {
      wait_for(i);
      look.Did(64);
    }
    while (!waiting.empty()) {
      look.Did(256);
      const Waiting next = waiting.top();
      waiting.pop();
      Symbol& left = symbols[next.at];
      if (left.gone || left.behind < 0 || PairOf(left.id, symbols[left.behind].id) != next.pair)
        continue;
      Symbol& right = symbols[left.behind];
      left.id = next.id;
      left.behind = right.behind;
      right.gone = true;
      if (left.behind >= 0) {
        symbols[left.behind].before = static_cast<int32_t>(next.at);
        wait_for(static_cast<int32_t>(next.at));
      }
      if (left.before >= 0) wait_for(left.before);
    }
    for (int32_t i = count == 0 ? -1 : 0; i >= 0; i = symbols[i].behind) out.Append(symbols[i].id);
  }

  const Options options_;
  const TokenTable tokens_;
  ByteTokens bytes_;
  absl::flat_hash_map<uint64_t, MergeOf> merges_;
  std::unique_ptr<ByteBpe> byte_bpe_;
};

// "a b" or ["a", "b"].
absl::Status ReadMerge(const JsonPart& json, std::string_view* left, std::string_view* right) {
  const nlohmann::json& value = json.value();
  if (value.is_string()) {
    const std::string_view both = value.get_ref<const std::string&>();
    const size_t space = both.find(' ');
    if (space != std::string_view::npos && both.find(' ', space + 1) == std::string_view::npos) {
      *left = both.substr(0, space);
      *right = both.substr(space + 1);
      return absl::OkStatus();
    }
  } else if (value.is_array() && value.size() == 2 && value[0].is_string() &&
             value[1].is_string()) {
    *left = value[0].get_ref<const std::string&>();
    *right = value[1].get_ref<const std::string&>();
    return absl::OkStatus();
  }
  return json.Refuse("two tokens with a space between, or an array of two");
}

absl::Status ReadMerges(const JsonPart& json, const TokenTable& tokens, const std::string& prefix,
                        std::vector<ByteBpe::Merge>* merges) {
  if (!json.value().is_array()) return json.Refuse("an array");
  const auto id_of = [&](std::string_view token, size_t i, uint32_t* id) {
    const auto found = tokens.IdOf(token);
    if (!found)
      return json.At(i).Refuse(
          absl::StrCat("tokens of the vocabulary, which has no \"", std::string(token), "\""));
    *id = *found;
    return absl::OkStatus();
  };
  for (size_t i = 0; i < json.value().size(); ++i) {
    std::string_view left, right;
    absl::Status status = ReadMerge(json.At(i), &left, &right);
    ByteBpe::Merge merge{};
    if (status.ok()) status = id_of(left, i, &merge.left);
    if (status.ok()) status = id_of(right, i, &merge.right);
    if (!status.ok()) return status;
    if (right.size() < prefix.size())
      return json.At(i).Refuse("a second token with the prefix of word parts");
    status = id_of(std::string(left).append(right.substr(prefix.size())), i, &merge.id);
    if (!status.ok()) return status;
    merges->push_back(merge);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Model>> Make(const JsonPart& json) {
  absl::Status status = json.OnlyMembers(
      {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
       "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  Options options;
  double dropout = 0;
  if (status.ok()) status = json["dropout"].Read(&dropout);
  if (status.ok() && dropout != 0)
    status = json["dropout"].NotSupported("leaving out merges by chance");
  if (status.ok()) status = json["unk_token"].Read(&options.unknown);
  if (status.ok()) status = json["continuing_subword_prefix"].Read(&options.prefix);
  if (status.ok()) status = json["end_of_word_suffix"].Read(&options.suffix);
  if (status.ok()) status = json["fuse_unk"].Read(&options.fuses_unknown);
  if (status.ok()) status = json["byte_fallback"].Read(&options.falls_back);
  if (status.ok()) status = json["ignore_merges"].Read(&options.ignores_merges);
  TokenTable tokens;
  if (status.ok()) status = tokens.Read(json["vocab"]);
  std::vector<ByteBpe::Merge> merges;
  if (status.ok()) status = ReadMerges(json["merges"], tokens, options.prefix, &merges);
  if (!status.ok()) return status;
  return std::make_unique<Bpe>(std::move(options), std::move(tokens), std::move(merges));
}

const PartRegistration<Model> kBpe("BPE", Make);

}  // namespace
}  // namespace penstock::text
