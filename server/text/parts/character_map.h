// The map of characters that a model of SentencePiece comes with (`precompiled_charsmap`): which
// texts are replaced by which.
//
//   ┌──────────────┬──────────────────┬──────────────────────────────────────┐
//   │ uint32, its  │ double array of  │ replacements, a zero byte behind each│
//   │ size in bytes│ Darts-clone      │                                      │
//   └──────────────┴──────────────────┴──────────────────────────────────────┘
//
// The array's values are places in the replacements. It is used as it lies in the file.
//
// Threads:  constant after Read(); safe from any thread.
// Errors:   InvalidArgument for a map that is damaged: each place is checked once.
// Source:   NormalizerSpec of SentencePiece 0.2.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace penstock::text {

class CharacterMap {
 public:
  struct Change {
    std::string_view text;
    size_t bytes = 0;   // that it takes the place of
    size_t looked = 0;  // how many bytes were looked at
  };

  // Replaces nothing.
  CharacterMap() { std::fill_n(is_left_.begin(), 0x80, true); }
  // `place`: where the map stands in a file, for errors.
  static absl::StatusOr<CharacterMap> Read(std::string_view bytes, std::string_view place);

  // Of the longest text of the map with which `text` begins; false: there is none. Sets what was
  // looked at in any case.
  bool Find(std::string_view text, Change* change) const;
  // The replacement of the shortest text of the map with which `text` begins, up to its first zero
  // byte.
  bool FindShortest(std::string_view text, std::string_view* replacement) const;

  // Whether a byte of ASCII stays as it is where the text ends behind it, or another byte of ASCII
  // follows.
  bool is_left(uint8_t byte) const { return is_left_[byte]; }

  // Shows the replacement of each text.
  void ForEachReplacement(absl::FunctionRef<void(std::string_view)> visit) const;
  // All of them, zero bytes between them.
  const std::string& replacements() const { return replacements_; }

 private:
  void FindBytesLeft();
  bool Begins(uint8_t first, uint8_t second) const;

  std::vector<uint32_t> units_;  // empty: no map
  std::string replacements_;     // each ends with a zero byte
  std::array<bool, 256> is_left_{};
};

}  // namespace penstock::text
