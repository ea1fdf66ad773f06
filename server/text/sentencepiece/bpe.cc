// Byte pair encoding of SentencePiece: neighbours are joined where both together are a piece, the
// piece with the greatest score first.
//
// Source: Sennrich, Haddow and Birch, Neural Machine Translation of Rare Words with Subword Units
// (2016). A piece that is not used is taken apart again, into the two that were last found to make
// it anywhere in the text, as in SentencePiece 0.2.3.
#include <algorithm>
#include <cstring>
#include <limits>
#include <queue>

#include "base/stop_flag.h"
#include "server/text/sentencepiece/pieces.h"

namespace penstock::text {
namespace {

class BpePieces final : public PieceModel {
 public:
  BpePieces(const Pieces& pieces, std::string_view space) : pieces_(pieces), space_(space) {
    bool joins_before = pieces.has_unused(), joins_behind = pieces.has_unused();
    for (uint32_t id = 0; id < pieces.size(); ++id) {
      if (!pieces.IsCutting(id)) continue;
      const std::string_view piece = pieces[id].text;
      longest_ = std::max(longest_, piece.size());
      for (size_t at = piece.find(space_); at != std::string_view::npos;
           at = piece.find(space_, at + 1)) {
        joins_before |= at > 0 && !EndsWithSpace(piece.substr(0, at));
        const std::string_view rest = piece.substr(at + space_.size());
        joins_behind |= !rest.empty() && rest.compare(0, space_.size(), space_) != 0;
      }
    }
    cuts_ = !joins_before ? Cuts::kBefore : !joins_behind ? Cuts::kBehind : Cuts::kNowhere;
  }

  void Encode(std::string_view text, WordCache& cache, IdBuffer& out) const override {
    const size_t floor = out.size();
    StopLook look;
    for (size_t from = 0; from < text.size();) {
      const size_t to = EndOfWord(text, from);
      const std::string_view word = text.substr(from, to - from);
      const size_t before = out.size();
      // No word fails.
      EncodeThrough(cache, word, out, [&](IdBuffer& ids) {
        EncodeWord(word, ids);
        return absl::OkStatus();
      }).IgnoreError();
      // What is unknown on both sides of a cut is one.
      if (before > floor && out.size() > before && out.data()[before] == pieces_.unknown() &&
          out.data()[before - 1] == pieces_.unknown())
        out.Erase(before, 1);
      look.Did(64);
      from = to;
    }
  }

 private:
  // Where no piece goes across.
  enum class Cuts { kBefore, kBehind, kNowhere };

  struct Symbol {
    std::string_view text;  // empty: it was joined to the one before
    size_t before, behind;  // kNone: there is none
    bool is_frozen;
  };
  static constexpr size_t kNone = ~size_t{0};
  struct Pair {
    int32_t score;  // in the order of RankOf()
    size_t left, right, bytes;
    bool operator<(const Pair& other) const {
      return score < other.score || (score == other.score && left > other.left);
    }
  };
  using Halves =
      absl::flat_hash_map<absl::string_view, std::pair<std::string_view, std::string_view>>;

  // Integers that are in the order of scores. The library compares scores by their bits: -0, the
  // score of the first piece that a trainer makes, is below 0.
  static int32_t RankOf(float score) {
    int32_t bits;
    std::memcpy(&bits, &score, sizeof(bits));
    return bits < 0 ? ~(bits & std::numeric_limits<int32_t>::max()) : bits;
  }

  static absl::string_view Key(std::string_view text) { return {text.data(), text.size()}; }

  bool EndsWithSpace(std::string_view text) const {
    return text.size() >= space_.size() && text.substr(text.size() - space_.size()) == space_;
  }

  // The next place behind `from` at which spaces begin, or end.
  size_t EndOfWord(std::string_view text, size_t from) const {
    if (cuts_ == Cuts::kNowhere) return text.size();
    size_t at = from;
    const auto skip_spaces = [&] {
      while (text.compare(at, space_.size(), space_) == 0) at += space_.size();
    };
    if (cuts_ == Cuts::kBefore) skip_spaces();
    at = std::min(text.find(space_, at), text.size());
    if (cuts_ == Cuts::kBehind) skip_spaces();
    return at;
  }

  void EncodeWord(std::string_view text, IdBuffer& out) const {
    const size_t floor = out.size();
    std::vector<Symbol> symbols;
    StopLook look;
    for (size_t at = 0; at < text.size();) {
      const std::string_view rest = text.substr(at);
      size_t looked = 0;
      const size_t defined = pieces_.user_defined().LongestPrefix(rest, &looked);
      const size_t bytes = defined > 0 ? defined : CharacterBytes(rest);
      symbols.push_back(
          {rest.substr(0, bytes), symbols.size() - 1, symbols.size() + 1, defined > 0});
      at += bytes;
      look.Did(64 + looked);
    }
    symbols.front().before = kNone;
    symbols.back().behind = kNone;

    std::priority_queue<Pair> waiting;
    Halves halves;
    const auto look_at = [&](size_t left, size_t right) {
      if (left == kNone || right == kNone) return;
      const Symbol &one = symbols[left], &other = symbols[right];
      const size_t bytes = one.text.size() + other.text.size();
      if (one.is_frozen || other.is_frozen || bytes > longest_) return;
      const std::string_view both(one.text.data(), bytes);
      look.Did(bytes);
      const auto id = pieces_.Find(both);
      if (!id) return;
      waiting.push({RankOf(pieces_[*id].score), left, right, bytes});
      if (pieces_[*id].kind == PieceKind::kUnused) halves[Key(both)] = {one.text, other.text};
    };
    for (size_t i = 1; i < symbols.size(); ++i) {
      look_at(i - 1, i);
      look.Did(64);
    }
    while (!waiting.empty()) {
      look.Did(256);
      const Pair next = waiting.top();
      waiting.pop();
      Symbol &left = symbols[next.left], &right = symbols[next.right];
      if (left.text.empty() || right.text.empty() ||
          left.text.size() + right.text.size() != next.bytes)
        continue;
      left.text = {left.text.data(), next.bytes};
      left.behind = right.behind;
      if (right.behind != kNone) symbols[right.behind].before = next.left;
      right.text = {};
      look_at(left.before, next.left);
      look_at(next.left, left.behind);
    }

    std::vector<std::string_view> open;
    for (size_t i = 0; i != kNone; i = symbols[i].behind) {
      open.push_back(symbols[i].text);
      while (!open.empty()) {
        const std::string_view piece = open.back();
        open.pop_back();
        look.Did(64 + piece.size());
        const uint32_t id = pieces_.IdOf(piece);
        const auto found =
            pieces_[id].kind == PieceKind::kUnused ? halves.find(Key(piece)) : halves.end();
        if (found != halves.end()) {
          open.push_back(found->second.second);
          open.push_back(found->second.first);
          continue;
        }
        pieces_.Append(id, piece, floor, out);
      }
    }
  }

  const Pieces& pieces_;
  const std::string space_;
  size_t longest_ = 0;
  Cuts cuts_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PieceModel>> MakeBpePieces(const Pieces& pieces,
                                                          std::string_view space) {
  if (absl::Status status = pieces.CheckNamesDiffer(); !status.ok()) return status;
  return std::make_unique<BpePieces>(pieces, space);
}

}  // namespace penstock::text
