#include "client/samples/chess/position.h"

#include <bit>

namespace penstock::chess {
namespace {

constexpr SquareSet Bit(int square) { return SquareSet{1} << square; }

constexpr SquareSet kFileA = 0x0101010101010101;
constexpr SquareSet kFileH = kFileA << 7;
constexpr SquareSet kRank1 = 0xff;
constexpr SquareSet kRank8 = kRank1 << 56;

struct Step {
  int file;
  int rank;
};

// The first four are a rook's directions, the last four a bishop's. In an odd place the square
// numbers fall.
constexpr Step kDirections[8] = {{1, 0}, {-1, 0},  {0, 1},  {0, -1},
                                 {1, 1}, {-1, -1}, {-1, 1}, {1, -1}};
constexpr Step kKnightSteps[8] = {{1, 2},   {2, 1},   {2, -1}, {1, -2},
                                  {-1, -2}, {-2, -1}, {-2, 1}, {-1, 2}};

struct Tables {
  SquareSet rays[8][64] = {};
  SquareSet knight[64] = {};
  SquareSet king[64] = {};
};

constexpr bool OnBoard(int file, int rank) {
  return file >= 0 && file < 8 && rank >= 0 && rank < 8;
}

constexpr Tables MakeTables() {
  Tables tables;
  for (int square = 0; square < 64; ++square) {
    const int file = square % 8, rank = square / 8;
    for (int d = 0; d < 8; ++d) {
      const Step step = kDirections[d];
      for (int n = 1; OnBoard(file + n * step.file, rank + n * step.rank); ++n) {
        const SquareSet bit = Bit(square + n * (step.file + 8 * step.rank));
        tables.rays[d][square] |= bit;
        if (n == 1) tables.king[square] |= bit;
      }
      const Step jump = kKnightSteps[d];
      if (OnBoard(file + jump.file, rank + jump.rank)) {
        tables.knight[square] |= Bit(square + jump.file + 8 * jump.rank);
      }
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

SquareSet Ray(int direction, int square, SquareSet occupied) {
  const SquareSet ray = kTables.rays[direction][square];
  const SquareSet blockers = ray & occupied;
  if (blockers == 0) return ray;
  const bool falling = direction % 2 == 1;
  const int first = falling ? 63 - std::countl_zero(blockers) : std::countr_zero(blockers);
  return ray & ~kTables.rays[direction][first];
}

SquareSet SlideAttacks(int square, SquareSet occupied, int first_direction, int last_direction) {
  SquareSet attacks = 0;
  for (int d = first_direction; d < last_direction; ++d) attacks |= Ray(d, square, occupied);
  return attacks;
}

SquareSet PieceAttacks(Kind kind, int square, SquareSet occupied) {
  switch (kind) {
    case kKnight:
      return kTables.knight[square];
    case kBishop:
      return SlideAttacks(square, occupied, 4, 8);
    case kRook:
      return SlideAttacks(square, occupied, 0, 4);
    case kQueen:
      return SlideAttacks(square, occupied, 0, 8);
    default:
      return kTables.king[square];
  }
}

SquareSet PawnAttacks(Color color, SquareSet pawns) {
  return color == kWhite ? (pawns & ~kFileA) << 7 | (pawns & ~kFileH) << 9
                         : (pawns & ~kFileA) >> 9 | (pawns & ~kFileH) >> 7;
}

constexpr int kHomeKing[2] = {4, 60};

// Rights that are gone once something moves from or to one of these corner or king squares.
uint8_t RightsOf(int square) {
  switch (square) {
    case 4:
      return 0b0011;
    case 7:
      return 0b0001;
    case 0:
      return 0b0010;
    case 60:
      return 0b1100;
    case 63:
      return 0b0100;
    case 56:
      return 0b1000;
    default:
      return 0;
  }
}

}  // namespace

std::optional<Move> ParseMove(std::string_view text) {
  if (text.size() != 4 && text.size() != 5) return std::nullopt;
  for (int i = 0; i < 4; ++i) {
    const char first = i % 2 == 0 ? 'a' : '1';
    if (text[i] < first || text[i] > first + 7) return std::nullopt;
  }
  Move move;
  move.from = static_cast<uint8_t>(8 * (text[1] - '1') + text[0] - 'a');
  move.to = static_cast<uint8_t>(8 * (text[3] - '1') + text[2] - 'a');
  if (text.size() == 5) {
    const size_t index = std::string_view("nbrq").find(text[4]);
    if (index == std::string_view::npos) return std::nullopt;
    move.promotion = static_cast<Kind>(kKnight + index);
  }
  return move;
}

Position Position::Start() {
  Position position;
  constexpr SquareSet kHome[kNumKinds] = {0xff00, 0x42, 0x24, 0x81, 0x08, 0x10};
  for (int kind = 0; kind < kNumKinds; ++kind) {
    position.pieces_[kWhite][kind] = kHome[kind];
    position.pieces_[kBlack][kind] = kind == kPawn ? kHome[kind] << 40 : kHome[kind] << 56;
  }
  return position;
}

SquareSet Position::occupied(Color color) const {
  SquareSet all = 0;
  for (SquareSet set : pieces_[color]) all |= set;
  return all;
}

Kind Position::KindAt(Color color, int square) const {
  for (int kind = 0; kind < kNumKinds; ++kind) {
    if (pieces_[color][kind] & Bit(square)) return static_cast<Kind>(kind);
  }
  return kNumKinds;
}

SquareSet Position::Attacks(Color color, Kind kind) const {
  if (kind == kPawn) return PawnAttacks(color, pieces_[color][kPawn]);
  const SquareSet all = occupied(kWhite) | occupied(kBlack);
  SquareSet attacks = 0;
  for (SquareSet left = pieces_[color][kind]; left != 0; left &= left - 1) {
    attacks |= PieceAttacks(kind, std::countr_zero(left), all);
  }
  return attacks;
}

bool Position::InCheck(Color color) const {
  const SquareSet king = pieces_[color][kKing];
  if (king == 0) return false;
  const int square = std::countr_zero(king);
  const SquareSet all = occupied(kWhite) | occupied(kBlack);
  const auto& enemy = pieces_[Opponent(color)];
  // A piece attacks the king where the king, moving like that piece, would meet it.
  return (PawnAttacks(color, king) & enemy[kPawn]) != 0 ||
         (kTables.knight[square] & enemy[kKnight]) != 0 ||
         (kTables.king[square] & enemy[kKing]) != 0 ||
         (SlideAttacks(square, all, 0, 4) & (enemy[kRook] | enemy[kQueen])) != 0 ||
         (SlideAttacks(square, all, 4, 8) & (enemy[kBishop] | enemy[kQueen])) != 0;
}

void Position::AddPawnMoves(MoveList* list) const {
  const SquareSet own = pieces_[turn_][kPawn];
  const SquareSet enemy = occupied(Opponent(turn_));
  const SquareSet empty = ~(occupied(turn_) | enemy);
  const int forward = turn_ == kWhite ? 8 : -8;
  const auto shift = [forward](SquareSet set) { return forward > 0 ? set << 8 : set >> 8; };
  const auto add = [list](int from, int to) {
    Move move{static_cast<uint8_t>(from), static_cast<uint8_t>(to), kPawn};
    if ((Bit(to) & (kRank1 | kRank8)) == 0) {
      list->Add(move);
      return;
    }
    for (Kind kind : {kKnight, kBishop, kRook, kQueen}) {
      move.promotion = kind;
      list->Add(move);
    }
  };
  const SquareSet one = shift(own) & empty;
  const SquareSet third_rank = turn_ == kWhite ? kRank1 << 16 : kRank1 << 40;
  const SquareSet two = shift(one & third_rank) & empty;
  for (SquareSet left = one; left != 0; left &= left - 1) {
    add(std::countr_zero(left) - forward, std::countr_zero(left));
  }
  for (SquareSet left = two; left != 0; left &= left - 1) {
    add(std::countr_zero(left) - 2 * forward, std::countr_zero(left));
  }
  const SquareSet targets = enemy | (en_passant_ >= 0 ? Bit(en_passant_) : 0);
  for (SquareSet left = own; left != 0; left &= left - 1) {
    const int from = std::countr_zero(left);
    for (SquareSet to = PawnAttacks(turn_, Bit(from)) & targets; to != 0; to &= to - 1) {
      add(from, std::countr_zero(to));
    }
  }
}

void Position::AddCastling(MoveList* list) const {
  const int home = kHomeKing[turn_];
  if ((!may_castle(turn_, true) && !may_castle(turn_, false)) || InCheck(turn_)) return;
  const SquareSet all = occupied(kWhite) | occupied(kBlack);
  for (bool king_side : {true, false}) {
    if (!may_castle(turn_, king_side)) continue;
    const int step = king_side ? 1 : -1;
    const SquareSet between =
        king_side ? Bit(home + 1) | Bit(home + 2) : Bit(home - 1) | Bit(home - 2) | Bit(home - 3);
    if ((all & between) != 0) continue;
    // The king may not cross an attacked square. Where it lands is checked with all other moves.
    Position crossed = *this;
    crossed.pieces_[turn_][kKing] = Bit(home + step);
    if (crossed.InCheck(turn_)) continue;
    list->Add({static_cast<uint8_t>(home), static_cast<uint8_t>(home + 2 * step), kPawn});
  }
}

void Position::PseudoLegalMoves(MoveList* list) const {
  list->count = 0;
  AddPawnMoves(list);
  const SquareSet own = occupied(turn_);
  const SquareSet all = own | occupied(Opponent(turn_));
  for (int kind = kKnight; kind < kNumKinds; ++kind) {
    for (SquareSet left = pieces_[turn_][kind]; left != 0; left &= left - 1) {
      const int from = std::countr_zero(left);
      SquareSet to = PieceAttacks(static_cast<Kind>(kind), from, all) & ~own;
      for (; to != 0; to &= to - 1) {
        list->Add({static_cast<uint8_t>(from), static_cast<uint8_t>(std::countr_zero(to)), kPawn});
      }
    }
  }
  AddCastling(list);
}

bool Position::IsPseudoLegal(Move move) const {
  MoveList list;
  PseudoLegalMoves(&list);
  for (const Move& possible : list) {
    if (possible == move) return true;
  }
  return false;
}

void Position::Apply(Move move) {
  const Color enemy = Opponent(turn_);
  const Kind kind = KindAt(turn_, move.from);
  const int jumped = en_passant_;
  const Kind taken = KindAt(enemy, move.to);
  en_passant_ = -1;
  last_move_captured_ = taken != kNumKinds;
  pieces_[turn_][kind] ^= Bit(move.from);
  if (taken != kNumKinds) pieces_[enemy][taken] ^= Bit(move.to);
  pieces_[turn_][move.promotion == kPawn ? kind : move.promotion] |= Bit(move.to);
  if (kind == kPawn) {
    const int behind = turn_ == kWhite ? -8 : 8;
    if (move.to == jumped) {
      pieces_[enemy][kPawn] ^= Bit(move.to + behind);
      last_move_captured_ = true;
    }
    if (move.to - move.from == -2 * behind) en_passant_ = static_cast<int8_t>(move.to + behind);
  }
  if (kind == kKing && move.to - move.from == 2) {
    pieces_[turn_][kRook] ^= Bit(move.to + 1) | Bit(move.to - 1);
  }
  if (kind == kKing && move.from - move.to == 2) {
    pieces_[turn_][kRook] ^= Bit(move.to - 2) | Bit(move.to + 1);
  }
  castling_ &= static_cast<uint8_t>(~(RightsOf(move.from) | RightsOf(move.to)));
  quiet_moves_ = static_cast<int16_t>(kind == kPawn || last_move_captured_ ? 0 : quiet_moves_ + 1);
  turn_ = enemy;
}

bool Position::IsCheckmate() const {
  if (!InCheck(turn_)) return false;
  MoveList list;
  PseudoLegalMoves(&list);
  for (const Move& move : list) {
    Position next = *this;
    next.Apply(move);
    if (!next.InCheck(turn_)) return false;
  }
  return true;
}

std::string Position::Placement() const {
  std::string text;
  for (int rank = 7; rank >= 0; --rank) {
    int empty = 0;
    const auto flush = [&] {
      if (empty > 0) text += static_cast<char>('0' + empty);
      empty = 0;
    };
    for (int file = 0; file < 8; ++file) {
      const int square = 8 * rank + file;
      const Kind white = KindAt(kWhite, square), black = KindAt(kBlack, square);
      if (white == kNumKinds && black == kNumKinds) {
        ++empty;
        continue;
      }
      flush();
      text += white != kNumKinds ? "PNBRQK"[white] : "pnbrqk"[black];
    }
    flush();
    if (rank > 0) text += '/';
  }
  return text;
}

}  // namespace penstock::chess
