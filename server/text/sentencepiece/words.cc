// Each word is a piece. A word begins at each U+2581, whatever the rules write for a space, as the
// library has it.
#include <algorithm>

#include "base/stop_flag.h"
#include "server/text/sentencepiece/model_file.h"
#include "server/text/sentencepiece/pieces.h"

namespace penstock::text {
namespace {

class WordPieces final : public PieceModel {
 public:
  explicit WordPieces(const Pieces& pieces) : pieces_(pieces) {}

  void Encode(std::string_view text, WordCache&, IdBuffer& out) const override {
    const size_t floor = out.size();
    StopLook look;
    while (!text.empty()) {
      const std::string_view word = text.substr(0, std::min(text.find(kSpaceSign, 1), text.size()));
      pieces_.Append(pieces_.IdOf(word), word, floor, out);
      text.remove_prefix(word.size());
      look.Did(64 + word.size());
    }
  }

 private:
  const Pieces& pieces_;
};

}  // namespace

std::unique_ptr<PieceModel> MakeWordPieces(const Pieces& pieces) {
  return std::make_unique<WordPieces>(pieces);
}

}  // namespace penstock::text
