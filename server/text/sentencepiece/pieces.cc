#include "server/text/sentencepiece/pieces.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace penstock::text {
namespace {

// -1: none. The library knows digits in capitals alone.
int ByteOfPiece(std::string_view piece) {
  for (int byte = 0; byte < 256; ++byte)
    if (piece.size() == 6 && piece == absl::StrFormat("<0x%02X>", byte)) return byte;
  return -1;
}

bool Cuts(PieceKind kind) {
  return kind == PieceKind::kNormal || kind == PieceKind::kUserDefined ||
         kind == PieceKind::kUnused;
}

absl::Status Refused(uint32_t id, const std::string& piece, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("pieces[", id, "]: expected ", expected, ", found \"",
                   absl::CHexEscape(absl::string_view(piece).substr(0, 60)), "\""));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Pieces>> Pieces::Make(std::vector<Piece> pieces,
                                                     bool falls_back_to_bytes) {
  std::unique_ptr<Pieces> made(new Pieces);
  made->pieces_ = std::move(pieces);
  made->falls_back_ = falls_back_to_bytes;
  std::optional<uint32_t> unknown;
  std::array<bool, 256> has_byte{};
  std::vector<PieceTrie::Entry> user_defined;
  // The library keeps names of pieces by which a text is cut apart from all others.
  Ids others;
  for (uint32_t id = 0; id < made->pieces_.size(); ++id) {
    const Piece& piece = made->pieces_[id];
    const auto refuse = [&](absl::string_view expected) {
      return Refused(id, piece.text, expected);
    };
    if (piece.text.size() >= kPieceBytesEnd)
      return refuse(absl::StrCat("a piece of fewer than ", kPieceBytesEnd, " bytes"));
    if (!(Cuts(piece.kind) ? made->cutting_ : others).emplace(piece.text, id).second)
      return refuse("pieces that differ");
    made->has_unused_ |= piece.kind == PieceKind::kUnused;
    if (piece.kind == PieceKind::kUserDefined) user_defined.emplace_back(piece.text, id);
    if (piece.kind == PieceKind::kUnknown) {
      if (unknown) return refuse("one piece for what is unknown");
      unknown = id;
    }
    if (piece.kind == PieceKind::kByte) {
      if (!falls_back_to_bytes) return refuse("no pieces of bytes without byte_fallback");
      const int byte = ByteOfPiece(piece.text);
      if (byte < 0) return refuse("<0x00> to <0xFF> as a piece of a byte");
      has_byte[byte] = true;
      made->byte_ids_[byte] = id;
    }
  }
  if (!unknown)
    return absl::InvalidArgumentError("pieces: expected one for what is unknown, found none");
  made->unknown_ = *unknown;
  if (falls_back_to_bytes) {
    const auto missing = std::find(has_byte.begin(), has_byte.end(), false);
    if (missing != has_byte.end()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "pieces: expected one for each byte, as byte_fallback asks for, found none for <0x%02X>",
          missing - has_byte.begin()));
    }
  }
  made->user_defined_ = PieceTrie(std::move(user_defined));
  return made;
}

absl::Status Pieces::CheckNamesDiffer() const {
  for (uint32_t id = 0; id < pieces_.size(); ++id)
    if (!IsCutting(id) && Find(pieces_[id].text))
      return Refused(id, pieces_[id].text, "pieces that differ, as BPE has one list of all");
  return absl::OkStatus();
}

bool Pieces::IsCutting(uint32_t id) const { return Cuts(pieces_[id].kind); }

void Pieces::Append(uint32_t id, std::string_view piece, size_t floor, IdBuffer& out) const {
  if (id == unknown_ || pieces_[id].kind == PieceKind::kUnused) {
    id = unknown_;
    if (falls_back_) {
      for (const char c : piece) out.Append(byte_ids_[static_cast<uint8_t>(c)]);
      return;
    }
    if (out.size() > floor && out.data()[out.size() - 1] == unknown_) return;
  }
  out.Append(id);
}

}  // namespace penstock::text
