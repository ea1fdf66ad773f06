// A position as one chess record: 194 bytes of bits and a score. This is the layout that
// config/pipelines/chess.textproto reads.
//
// Bits are counted from the first byte, the most significant bit of each byte first. Everything is
// seen by the side to move
// ("own"): for Black the board is mirrored top to bottom, so that own pawns always move towards
// higher rows.
//
//   bits [0, 1536)     the board as (8, 8, 24): row 0 is the own first rank, column 0 the a-file,
//   then 24 planes:
//                      4 * kind + 0: an own piece of the kind stands here
//                      4 * kind + 1: an opponent's piece of the kind stands here
//                      4 * kind + 2: an own piece of the kind attacks this square
//                      4 * kind + 3: an opponent's piece of the kind attacks this square
//                      kinds: pawn, knight, bishop, rook, queen, king
//   bits [1536, 1546)  flags: own castling king side, own queen side, the opponent's king side,
//   queen side, Black is to move, a
//                      pawn may be taken en passant, in check, the last move captured, no queens,
//                      10 quiet moves or more
//   bit  1546          the score counts moves to mate instead of centipawns
//   bits [1547, 1552)  zero
#pragma once

#include <array>
#include <cstdint>

#include "client/samples/chess/position.h"

namespace penstock::chess {

inline constexpr int kRecordBytes = 194;
inline constexpr int kMateBit = 1546;

struct Record {
  std::array<uint8_t, kRecordBytes> bits;
  int64_t score;  // for the side to move
};

// What is known of a mate: none, the side to move is mated (score -1), or its next move mates
// (score +1).
enum class Mate { kNone, kMated, kMatesNext };

// Without a mate the score is material (100, 300, 320, 500, 900 centipawns) plus 4 for each square
// that own pieces attack, less the opponent's.
Record Encode(const Position& position, Mate mate);

// Turns the record of a position into that of one whose next move mates.
void MarkMatesNext(Record* record);

}  // namespace penstock::chess
