// The pieces whose scores have the greatest sum, by Viterbi's algorithm.
//
// Source: Kudo, Subword Regularization (2018). Sums are rounded as in SentencePiece 0.2.3: they are
// floats and run on from the beginning of the text; one that is further from 0 than kGreatestSum is
// taken away from those ahead. So ways that are equally good but for rounding are told apart as
// there.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "server/text/sentencepiece/pieces.h"

namespace penstock::text {
namespace {

class UnigramPieces final : public PieceModel {
 public:
  UnigramPieces(const Pieces& pieces, std::vector<PieceTrie::Entry> cutting)
      : pieces_(pieces), trie_(std::move(cutting)) {
    float least = std::numeric_limits<float>::max();
    for (const Pieces::Piece& piece : pieces.all()) {
      if (piece.kind != PieceKind::kNormal) continue;
      least = std::min(least, piece.score);
    }
    unknown_score_ = least - kUnknownPenalty;
  }

  void Encode(std::string_view text, WordCache&, IdBuffer& out) const override {
    const size_t floor = out.size();
    std::vector<Step> steps(1);  // to the places from `begin` on
    std::vector<Step> way;
    StopLook look;
    for (size_t begin = 0, at = 0; at < text.size();) {
      const size_t bytes = CharacterBytes(text.substr(at));
      float& sum_here = steps[at - begin].sum;
      if (sum_here < -kGreatestSum || sum_here > kGreatestSum) {
        for (size_t ahead = at - begin + 1; ahead < steps.size(); ++ahead)
          steps[ahead].sum -= sum_here;
        look.Did(steps.size() - (at - begin));
        sum_here = 0;
      }
      const float sum = sum_here;
      bool has_single = false;
      const auto step_to = [&](size_t to, float with, uint32_t id) {
        if (to - begin >= steps.size()) steps.resize(to - begin + 1);
        Step& step = steps[to - begin];
        if (step.id != kNowhere && !(with > step.sum)) return;
        step = {id, static_cast<uint32_t>(to - at), with};
      };
      look.Did(16 + trie_.ForEachPrefix(text.substr(at), [&](size_t length, uint32_t id) {
        const Pieces::Piece& piece = pieces_[id];
        if (piece.kind == PieceKind::kUnused) return;
        const float score =
            piece.kind == PieceKind::kUserDefined ? UserDefinedScore(length) : piece.score;
        step_to(at + length, score + sum, id);
        has_single |= length == bytes;
      }));
      if (!has_single) step_to(at + bytes, unknown_score_ + sum, pieces_.unknown());
      at += bytes;
      // Where no piece goes beyond a place, the best way to it stays.
      if (at - begin + 1 < steps.size()) continue;
      way.clear();
      for (size_t end = at; end > begin; end -= way.back().bytes) way.push_back(steps[end - begin]);
      for (size_t end = begin; !way.empty(); way.pop_back()) {
        pieces_.Append(way.back().id, text.substr(end, way.back().bytes), floor, out);
        end += way.back().bytes;
      }
      steps[0] = {kNowhere, 0, steps[at - begin].sum};
      steps.resize(1);
      begin = at;
    }
  }

 private:
  static constexpr float kUnknownPenalty = 10;
  static constexpr float kGreatestSum = 100'000;
  static constexpr uint32_t kNowhere = ~uint32_t{0};

  // A piece that the user defined has a score above those of the pieces that were learnt: scores
  // are logarithms of probabilities. A long one beats shorter ones that stand in its place, since
  // each takes something off. Computed in doubles and rounded once, as the library does it.
  static float UserDefinedScore(size_t bytes) {
    return static_cast<float>(0.1 * (static_cast<double>(bytes) - 1));
  }

  // The best way to a place: its last piece, and the sum of all.
  struct Step {
    uint32_t id = kNowhere;
    uint32_t bytes = 0;
    float sum = 0;
  };

  const Pieces& pieces_;
  const PieceTrie trie_;
  float unknown_score_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PieceModel>> MakeUnigramPieces(const Pieces& pieces) {
  std::vector<PieceTrie::Entry> cutting;
  for (uint32_t id = 0; id < pieces.size(); ++id) {
    if (!std::isfinite(pieces[id].score))
      return absl::InvalidArgumentError(absl::StrCat(
          "pieces[", id, "].score: expected a finite number, found ", pieces[id].score));
    if (pieces.IsCutting(id)) cutting.emplace_back(pieces[id].text, id);
  }
  if (cutting.empty())
    return absl::InvalidArgumentError("pieces: expected one by which a text is cut, found none");
  return std::make_unique<UnigramPieces>(pieces, std::move(cutting));
}

}  // namespace penstock::text
