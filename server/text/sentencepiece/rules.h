// How a model of SentencePiece changes a text before it is cut: replacements of a precompiled map,
// spaces, and the sign that stands for a space.
//
// Threads:  constant after Make(); safe from any thread.
// Errors:   InvalidArgument for a map that is damaged; ResourceExhausted for a text that becomes
//           far longer than it was.
// Limits:   kGrowth times the text and kFewBytes, at most kTextBytesMax.
// Source:   NormalizerSpec of SentencePiece 0.2. A map holds a double array of Darts-clone, whose
//           values are places in the replacements behind it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
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
  struct Change {
    std::string_view text;
    size_t bytes;       // that it takes the place of
    size_t looked = 0;  // how many bytes were looked at
  };

  TextRules() = default;
  absl::Status ReadMap(std::string_view map, std::string_view name);
  void FindPlainBytes();
  Change ChangeAt(std::string_view text) const;
  // Of the longest text of the map with which `text` begins; false: there is none. Sets what was
  // looked at in any case.
  bool FindInMap(std::string_view text, Change* change) const;

  bool adds_space_ = true, removes_extra_spaces_ = true, space_behind_ = false;
  std::string_view space_;
  const PieceTrie* kept_ = nullptr;
  std::vector<uint32_t> units_;  // empty: no map
  std::string replacements_;     // each ends with a zero byte
  // Bytes of ASCII that stay as they are where no other byte than one of ASCII follows.
  std::array<bool, 256> is_plain_{};
};

}  // namespace penstock::text
