#include "server/text/added_tokens.h"

#include <algorithm>

#include "base/stop_flag.h"
#include "server/text/unicode/classes.h"

namespace penstock::text {
namespace {

// The code point that ends at `end`, and where it begins. REQUIRES: end > 0.
uint32_t CodePointBefore(std::string_view text, size_t end, size_t* begin) {
  *begin = end - 1;
  while (*begin > 0 && (static_cast<uint8_t>(text[*begin]) & 0xc0) == 0x80) --*begin;
  uint32_t code_point;
  ReadCodePoint(reinterpret_cast<const uint8_t*>(text.data()) + *begin, &code_point);
  return code_point;
}

uint32_t CodePointAt(std::string_view text, size_t at, size_t* next) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
  uint32_t code_point;
  *next = static_cast<size_t>(ReadCodePoint(bytes + at, &code_point) - bytes);
  return code_point;
}

bool StandsAlone(std::string_view text, size_t from, size_t to) {
  size_t edge;
  return (from == 0 || !(Flags()[CodePointBefore(text, from, &edge)] & kWord)) &&
         (to == text.size() || !(Flags()[CodePointAt(text, to, &edge)] & kWord));
}

size_t BeforeSpaces(std::string_view text, size_t at) {
  size_t begin;
  while (at > 0 && (Flags()[CodePointBefore(text, at, &begin)] & kBlank)) at = begin;
  return at;
}

size_t BehindSpaces(std::string_view text, size_t at) {
  size_t next;
  while (at < text.size() && (Flags()[CodePointAt(text, at, &next)] & kBlank)) at = next;
  return at;
}

}  // namespace

absl::Status AddedTokens::Read(const JsonPart& json, const Model& model,
                               const Normalizer* normalizer) {
  if (json.is_null()) return absl::OkStatus();
  if (!json.is_array()) return json.Refuse("an array");
  for (size_t i = 0; i < json.size(); ++i) {
    const JsonPart part = json.At(i);
    Token token{};
    bool normalized = false;
    absl::Status status = part.OnlyMembers(
        {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    if (status.ok() && part["id"].is_null()) status = part["id"].Refuse("an id");
    if (status.ok()) status = part["id"].ReadId(&token.id);
    if (status.ok()) status = part["content"].Read(&token.content);
    if (status.ok()) status = part["single_word"].Read(&token.single_word);
    if (status.ok()) status = part["lstrip"].Read(&token.strips_left);
    if (status.ok()) status = part["rstrip"].Read(&token.strips_right);
    if (status.ok()) status = part["special"].Read(&token.special);
    normalized = !token.special;
    if (status.ok()) status = part["normalized"].Read(&normalized);
    if (!status.ok()) return status;
    if (token.content.empty()) continue;
    if (const auto id = model.IdOf(token.content); id && *id != token.id)
      return part["id"].Refuse("the id that the vocabulary has for this token");
    if (!by_id_.emplace(token.id, tokens_.size()).second)
      return part["id"].Refuse("an id that no other added token has");
    std::string searched = token.content;
    if (normalized && normalizer != nullptr) normalizer->Apply(&searched);
    if (!searched.empty())
      (normalized ? normalized_ : plain_).Add(searched, static_cast<uint32_t>(tokens_.size()));
    is_special_[token.content] |= token.special;
    tokens_.push_back(std::move(token));
  }
  return absl::OkStatus();
}

absl::Status AddedTokens::ForEachPiece(std::string_view text, bool normalized,
                                       const OnPiece& piece) const {
  const Trie& trie = normalized ? normalized_ : plain_;
  size_t open = 0;
  StopLook look;
  for (size_t at = 0; at < text.size() && !trie.empty();) {
    if (!trie.begins(text[at])) {
      ++at;
      continue;
    }
    size_t bytes = 0;
    uint32_t place = 0;
    trie.ForEachPrefix(text.substr(at), [&](size_t length, uint32_t value) {
      bytes = length;
      place = value;
    });
    look.Did(64);
    if (bytes == 0) {
      ++at;
      continue;
    }
    const Token& token = tokens_[place];
    size_t from = at, to = at + bytes;
    at = to;
    if (token.single_word && !StandsAlone(text, from, to)) continue;
    if (token.strips_left) from = std::max(BeforeSpaces(text, from), open);
    if (token.strips_right) to = BehindSpaces(text, to);
    if (from < open) continue;
    absl::Status status = open < from ? piece(open, from, std::nullopt) : absl::OkStatus();
    if (status.ok()) status = piece(from, to, token.id);
    if (!status.ok()) return status;
    open = to;
  }
  return open < text.size() ? piece(open, text.size(), std::nullopt) : absl::OkStatus();
}

const std::string* AddedTokens::TokenOf(uint32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second].content;
}

bool AddedTokens::IsSpecial(std::string_view token) const {
  const auto found = is_special_.find(absl::string_view(token.data(), token.size()));
  return found != is_special_.end() && found->second;
}

}  // namespace penstock::text
