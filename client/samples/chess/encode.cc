#include "client/samples/chess/encode.h"

#include <bit>

namespace penstock::chess {
namespace {

constexpr int kPlanes = 24;
constexpr int kFlagsBit = 64 * kPlanes;
constexpr int kCentipawns[kNumKinds] = {100, 300, 320, 500, 900, 0};
constexpr int kCentipawnsPerAttackedSquare = 4;
constexpr int kManyQuietMoves = 20;  // of both sides together

void SetBit(Record* record, int bit) {
  record->bits[bit / 8] |= static_cast<uint8_t>(0x80 >> bit % 8);
}

// Reverses the order of the ranks, which are the bytes.
SquareSet Mirror(SquareSet set) { return __builtin_bswap64(set); }

}  // namespace

Record Encode(const Position& position, Mate mate) {
  Record record = {};
  const Color own = position.turn();
  const Color opponent = Opponent(own);
  int score = 0;
  for (int k = 0; k < kNumKinds; ++k) {
    const Kind kind = static_cast<Kind>(k);
    const SquareSet planes[4] = {position.pieces(own, kind), position.pieces(opponent, kind),
                                 position.Attacks(own, kind), position.Attacks(opponent, kind)};
    score += kCentipawns[k] * (std::popcount(planes[0]) - std::popcount(planes[1]));
    score += kCentipawnsPerAttackedSquare * (std::popcount(planes[2]) - std::popcount(planes[3]));
    for (int p = 0; p < 4; ++p) {
      SquareSet left = own == kWhite ? planes[p] : Mirror(planes[p]);
      for (; left != 0; left &= left - 1) {
        SetBit(&record, std::countr_zero(left) * kPlanes + 4 * k + p);
      }
    }
  }
  const bool flags[] = {
      position.may_castle(own, true),
      position.may_castle(own, false),
      position.may_castle(opponent, true),
      position.may_castle(opponent, false),
      own == kBlack,
      position.en_passant() >= 0,
      position.InCheck(own),
      position.last_move_captured(),
      (position.pieces(kWhite, kQueen) | position.pieces(kBlack, kQueen)) == 0,
      position.quiet_moves() >= kManyQuietMoves,
  };
  int bit = kFlagsBit;
  for (bool flag : flags) {
    if (flag) SetBit(&record, bit);
    ++bit;
  }
  record.score = score;
  if (mate != Mate::kNone) {
    MarkMatesNext(&record);
    if (mate == Mate::kMated) record.score = -1;
  }
  return record;
}

void MarkMatesNext(Record* record) {
  SetBit(record, kMateBit);
  record->score = 1;
}

}  // namespace penstock::chess
