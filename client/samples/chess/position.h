// A chess position: the pieces, whose turn it is, and the moves that are possible. It knows the
// rules only as far as sample data needs them; it plays no chess.
//
// Threads:  a Position is a value; all functions are safe from any thread.
// Limits:   at most 256 moves in a position (218 is the known maximum).
// Cost:     PseudoLegalMoves() about 0.3 us.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::chess {

enum Color : uint8_t { kWhite = 0, kBlack = 1 };
enum Kind : uint8_t { kPawn = 0, kKnight, kBishop, kRook, kQueen, kKing, kNumKinds };

constexpr Color Opponent(Color color) { return static_cast<Color>(1 - color); }

// A set of squares: bit 8 * rank + file, both from 0; a1 is bit 0, h8 bit 63.
using SquareSet = uint64_t;

struct Move {
  uint8_t from = 0;
  uint8_t to = 0;
  Kind promotion = kPawn;  // the new piece of a pawn that reaches the last rank; else kPawn

  friend bool operator==(const Move&, const Move&) = default;
};

struct MoveList {
  std::array<Move, 256> moves;
  int count = 0;

  void Add(Move move) { moves[count++] = move; }
  const Move* begin() const { return moves.data(); }
  const Move* end() const { return moves.data() + count; }
};

// Coordinate form: "e2e4", "e7e8q"; castling is the king's move. nullopt when it is not of that
// form.
std::optional<Move> ParseMove(std::string_view text);

class Position {
 public:
  // The position before the first move.
  static Position Start();

  Color turn() const { return turn_; }
  SquareSet pieces(Color color, Kind kind) const { return pieces_[color][kind]; }
  SquareSet occupied(Color color) const;

  // Whether castling towards the h-file (king side) or the a-file is still allowed by the moves
  // made so far.
  bool may_castle(Color color, bool king_side) const {
    return (castling_ >> (2 * color + (king_side ? 0 : 1)) & 1) != 0;
  }
  // The square that a pawn jumped over in the last move, or -1.
  int en_passant() const { return en_passant_; }
  // Moves of one side since the last capture or pawn move.
  int quiet_moves() const { return quiet_moves_; }
  bool last_move_captured() const { return last_move_captured_; }

  // The squares that the pieces of this kind attack, own pieces on them included.
  SquareSet Attacks(Color color, Kind kind) const;
  bool InCheck(Color color) const;

  // The moves of the side to move, without asking whether its own king is left in check; castling
  // is complete in its rules.
  void PseudoLegalMoves(MoveList* list) const;
  bool IsPseudoLegal(Move move) const;

  // REQUIRES: IsPseudoLegal(move).
  void Apply(Move move);

  // Whether the side to move is in check and no move helps.
  bool IsCheckmate() const;

  // The placement field of Forsyth-Edwards notation: ranks from 8 to 1, such as
  // "8/8/4k3/8/8/3K4/8/8".
  std::string Placement() const;

 private:
  Kind KindAt(Color color, int square) const;
  void AddPawnMoves(MoveList* list) const;
  void AddCastling(MoveList* list) const;

  SquareSet pieces_[2][kNumKinds] = {};
  Color turn_ = kWhite;
  uint8_t castling_ =
      0b1111;  // white king side, white queen side, black king side, black queen side
  int8_t en_passant_ = -1;
  int16_t quiet_moves_ = 0;
  bool last_move_captured_ = false;
};

}  // namespace penstock::chess
