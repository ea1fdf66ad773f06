// The pieces of a model of SentencePiece, and which ids a text's pieces become.
//
// Threads:  constant after Make(); safe from any thread.
// Errors:   InvalidArgument for pieces that the library refuses as well.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/text/bpe/id_buffer.h"
#include "server/text/bpe/word_cache.h"
#include "server/text/sentencepiece/model_file.h"
#include "server/text/sentencepiece/piece_trie.h"

namespace penstock::text {

// The library takes no pieces of so many bytes.
inline constexpr size_t kPieceBytesEnd = 8'000;

class Pieces {
 public:
  using Piece = SentencePieceFile::Piece;

  static absl::StatusOr<std::unique_ptr<Pieces>> Make(std::vector<Piece> pieces,
                                                      bool falls_back_to_bytes);

  size_t size() const { return pieces_.size(); }
  const Piece& operator[](uint32_t id) const { return pieces_[id]; }
  const std::vector<Piece>& all() const { return pieces_; }

  // The id of a piece by which a text is cut: a normal one, one that the user defined, or one that
  // is not used.
  std::optional<uint32_t> Find(std::string_view piece) const { return FindIn(cutting_, piece); }
  // InvalidArgument where a text is a piece by which a text is cut, and another one as well.
  absl::Status CheckNamesDiffer() const;
  // Find(), or the unknown piece's id. A text never has control symbols, bytes or the unknown piece
  // itself.
  uint32_t IdOf(std::string_view piece) const { return Find(piece).value_or(unknown_); }
  bool IsCutting(uint32_t id) const;
  uint32_t unknown() const { return unknown_; }
  // The pieces that the user defined, which nothing changes or cuts.
  const PieceTrie& user_defined() const { return user_defined_; }
  // Whether a piece is there that is not used.
  bool has_unused() const { return has_unused_; }

  // Appends what a piece of a text becomes. What is unknown or not used becomes its bytes, or one
  // id with the unknown pieces in front of it, down to `floor`.
  void Append(uint32_t id, std::string_view piece, size_t floor, IdBuffer& out) const;

 private:
  using Ids = absl::flat_hash_map<std::string, uint32_t>;
  Pieces() = default;
  static std::optional<uint32_t> FindIn(const Ids& ids, std::string_view piece) {
    const auto found = ids.find(absl::string_view(piece.data(), piece.size()));
    if (found == ids.end()) return std::nullopt;
    return found->second;
  }

  std::vector<Piece> pieces_;
  Ids cutting_;
  PieceTrie user_defined_;
  uint32_t unknown_ = 0;
  bool has_unused_ = false, falls_back_ = false;
  std::array<uint32_t, 256> byte_ids_{};
};

// Cuts a text into pieces.
class PieceModel {
 public:
  virtual ~PieceModel() = default;
  // `text`: as the rules left it. The ids are appended.
  virtual void Encode(std::string_view text, WordCache& cache, IdBuffer& out) const = 0;
};

// One of each file. `space`: what stands for a space in a changed text. The pieces outlive the
// model.
absl::StatusOr<std::unique_ptr<PieceModel>> MakeUnigramPieces(const Pieces& pieces);
absl::StatusOr<std::unique_ptr<PieceModel>> MakeBpePieces(const Pieces& pieces,
                                                          std::string_view space);
std::unique_ptr<PieceModel> MakeWordPieces(const Pieces& pieces);
std::unique_ptr<PieceModel> MakeCharacterPieces(const Pieces& pieces);

// The bytes of the character with which a text begins, as its first byte has it. Of any bytes: a
// rule may leave some that are no UTF-8, for which CodePointBytes() has no answer. REQUIRES: a
// byte.
inline size_t CharacterBytes(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  const size_t bytes = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return bytes < text.size() ? bytes : text.size();
}

}  // namespace penstock::text
