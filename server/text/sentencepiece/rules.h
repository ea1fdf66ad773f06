// How a model of SentencePiece changes a text before it is cut: replacements of a precompiled map,
// spaces, and the sign that stands for a space.
//
// Threads:  constant after Make(); safe from any thread.
// Errors:   InvalidArgument for a map that is damaged; ResourceExhausted for a text that becomes
//           far longer than it was.
// Limits:   kGrowth times the text and kFewBytes, at most kTextBytesMax.
// Source:   NormalizerSpec of SentencePiece 0.2.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/text/parts/character_map.h"
#include "server/text/sentencepiece/model_file.h"
#include "server/text/sentencepiece/piece_trie.h"

namespace penstock::text {

class TextRules {
 public:
  // `name`: of the part of the file, for errors. `kept`: what stays as it is; null: nothing does.
  // It outlives the rules.
  static absl::StatusOr<std::unique_ptr<TextRules>> Make(const SentencePieceFile::Rules& rules,
                                                         bool space_behind, std::string_view name,
                                                         const PieceTrie* kept);

  // The library counts bytes by an int.
  static constexpr size_t kTextBytesMax = INT32_MAX;
  // Unicode's longest replacement has 11 times the bytes.
  static constexpr size_t kGrowth = 32, kFewBytes = 1024;

  // Writes the changed text to `*to`, whatever was there.
  absl::Status Apply(std::string_view text, std::string* to) const;

  // What stands for a space in a changed text.
  std::string_view space() const { return space_; }

 private:
  TextRules() = default;
  void FindPlainBytes();
  CharacterMap::Change ChangeAt(std::string_view text) const;

  bool adds_space_ = true, removes_extra_spaces_ = true, space_behind_ = false;
  std::string_view space_;
  const PieceTrie* kept_ = nullptr;
  CharacterMap map_;
  // Bytes of ASCII that stay as they are where no other byte than one of ASCII follows.
  std::array<bool, 256> is_plain_{};
};

}  // namespace penstock::text
