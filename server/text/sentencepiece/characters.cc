// Each character is a piece.
#include "base/stop_flag.h"
#include "server/text/sentencepiece/pieces.h"

namespace penstock::text {
namespace {

class CharacterPieces final : public PieceModel {
 public:
  explicit CharacterPieces(const Pieces& pieces) : pieces_(pieces) {}

  void Encode(std::string_view text, WordCache&, IdBuffer& out) const override {
    const size_t floor = out.size();
    StopLook look;
    while (!text.empty()) {
      size_t looked = 0;
      const size_t defined = pieces_.user_defined().LongestPrefix(text, &looked);
      const std::string_view piece = text.substr(0, defined > 0 ? defined : CharacterBytes(text));
      pieces_.Append(pieces_.IdOf(piece), piece, floor, out);
      text.remove_prefix(piece.size());
      look.Did(64 + looked);
    }
  }

 private:
  const Pieces& pieces_;
};

}  // namespace

std::unique_ptr<PieceModel> MakeCharacterPieces(const Pieces& pieces) {
  return std::make_unique<CharacterPieces>(pieces);
}

}  // namespace penstock::text
