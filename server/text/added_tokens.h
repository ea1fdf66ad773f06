// Tokens that are looked for in the text itself, before anything cuts it: <|endoftext|>, [MASK].
//
// Threads:  constant after Read(); safe from any thread.
// Source:   AddedVocabulary of `tokenizers`: the leftmost match, and the longest of those.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "server/text/parts/parts.h"
#include "server/text/parts/trie.h"

namespace penstock::text {

class AddedTokens {
 public:
  // `normalizer` may be null.
  absl::Status Read(const JsonPart& json, const Model& model, const Normalizer* normalizer);

  // Calls `piece(from, to, id)` for the stretches of a text, from left to right; `id` is that of a
  // token, or none. `normalized`: the tokens that are looked for in normalised text, else the
  // others.
  using OnPiece = std::function<absl::Status(size_t from, size_t to, std::optional<uint32_t> id)>;
  absl::Status ForEachPiece(std::string_view text, bool normalized, const OnPiece& piece) const;

  // Null where there is none.
  const std::string* TokenOf(uint32_t id) const;
  bool IsSpecial(std::string_view token) const;

 private:
  struct Token {
    std::string content;
    uint32_t id;
    bool single_word, strips_left, strips_right, special;
  };

  std::vector<Token> tokens_;
  Trie plain_, normalized_;  // their values are places in tokens_
  absl::flat_hash_map<uint32_t, size_t> by_id_;
  absl::flat_hash_map<std::string, bool> is_special_;
};

}  // namespace penstock::text
