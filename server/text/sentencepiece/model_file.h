// What a model file of SentencePiece says: a ModelProto of its sentencepiece_model.proto, in
// protobuf's wire format.
//
// Threads:  functions without state.
// Limits:   kPiecesMax pieces, of kPieceBytesMax bytes together.
// Errors:   InvalidArgument "pieces[3].type: expected ..., found ...".
// Source:   the messages and their defaults are those of SentencePiece 0.2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::text {

// What stands for a space in pieces.
inline constexpr std::string_view kSpaceSign = "\u2581";

// By the numbers of the file.
enum class PieceKind : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};
enum class PieceModelKind : uint8_t { kUnigram = 1, kBpe = 2, kWords = 3, kCharacters = 4 };

struct SentencePieceFile {
  struct Piece {
    std::string text;
    float score = 0;
    PieceKind kind = PieceKind::kNormal;
  };
  // How a text is changed.
  struct Rules {
    std::string charsmap;  // "": no rules
    bool adds_space = true;
    bool removes_extra_spaces = true;
    bool escapes_spaces = true;
  };

  std::vector<Piece> pieces;  // by id
  PieceModelKind kind = PieceModelKind::kUnigram;
  bool falls_back_to_bytes = false;
  bool space_behind = false;  // the space that is added stands behind the text
  std::string unknown_surface = " \u2047 ";
  Rules rules;
  std::optional<Rules> rules_back;  // of a text that was made of pieces
};

inline constexpr size_t kPiecesMax = size_t{1} << 21;
inline constexpr size_t kPieceBytesMax = size_t{16} << 20;

absl::StatusOr<SentencePieceFile> ReadSentencePieceFile(std::string_view file);

}  // namespace penstock::text
