#include <bit>
#include <set>
#include <string>
#include <vector>

#include "client/samples/chess/encode.h"
#include "client/samples/chess/games.h"
#include "client/samples/chess/position_stream.h"
#include "tests/support/catch.h"

namespace penstock::chess {
namespace {

std::vector<Position> ReplayWhole(const Game& game) {
  std::string error;
  std::vector<Position> positions = Replay(game, &error);
  INFO(error);
  REQUIRE(error.empty());
  return positions;
}

// Plays moves from the start.
Position After(std::string_view moves) { return ReplayWhole({"test", moves, false}).back(); }

bool BitAt(const Record& record, int bit) { return record.bits[bit / 8] >> (7 - bit % 8) & 1; }

int PlaneBit(int row, int column, int plane) { return (row * 8 + column) * 24 + plane; }

// The placements that another chess program reaches with the same games, and whether it calls them
// mate.
struct Ending {
  std::string_view title;
  std::string_view placement;
  bool mate;
};
constexpr Ending kEndings[] = {
    {"Legal - Saint-Brie, Paris 1750", "rn1q1bnr/ppp1kB1p/3p2p1/3NN3/4P3/8/PPPP1PPP/R1BbK2R", true},
    {"Anderssen - Kieseritzky, the Immortal Game, London 1851",
     "r1bk3r/p2pBpNp/n4n2/1p1NP2P/6P1/3P4/P1P1K3/q5b1", true},
    {"Anderssen - Dufresne, the Evergreen Game, Berlin 1852",
     "1r3kr1/pbpBBp1p/1b3P2/8/8/2P2q2/P4PPP/3R2K1", true},
    {"Paulsen - Morphy, New York 1857", "6k1/p1p2ppp/2p4r/8/1P1P4/2P1b3/4r2P/R1B2R1K", false},
    {"Morphy - Duke of Brunswick and Count Isouard, the Opera Game, Paris 1858",
     "1n1Rkb1r/p4ppp/4q3/4p1B1/4P3/8/PPP2PPP/2K5", true},
    {"Lasker - Bauer, Amsterdam 1889", "8/8/1p1rk3/8/7P/1P1Q4/P1PP2P1/6K1", false},
    {"Steinitz - von Bardeleben, Hastings 1895", "r1r4k/pp1q3R/5pp1/3p2N1/6Q1/8/PP3PPP/2R3K1",
     false},
    {"Rotlewi - Rubinstein, Lodz 1907", "6k1/5ppp/pb2p3/1p2P3/1P2bPnP/P6r/1B4QP/R4R1K", false},
    {"Reti - Tartakower, Vienna 1910", "rnbB1b1r/ppk2ppp/2p5/4q3/4n3/8/PPP2PPP/2KR1BNR", true},
    {"Edward Lasker - Thomas, London 1912", "rn3r2/pbppq1p1/1p2pN2/8/3P2NP/6P1/PPPKBP1R/R5k1",
     true},
    {"Capablanca - Marshall, New York 1918", "5rk1/1P3Bp1/R6p/8/6P1/2B1rQ2/2K3P1/6q1", false},
    {"Saemisch - Nimzowitsch, the Immortal Zugzwang Game, Copenhagen 1923",
     "6k1/3q2p1/p2bp2p/3p1r2/1p1Pp3/3bQ1PP/PP1B1rB1/1N2R1RK", false},
    {"Botvinnik - Capablanca, AVRO 1938", "6k1/p3P2p/1p3Q2/3p3K/2pP2P1/1nP5/7P/4q3", false},
    {"D. Byrne - Fischer, the Game of the Century, New York 1956",
     "1Q6/5pk1/2p3p1/1p2N2p/1b5P/1bn5/2r3P1/2K5", true},
    {"Fischer - Spassky, Reykjavik 1972, game 6", "4q2k/2r1r3/4PR1p/p1p5/P1Bp1Q1P/1P6/6P1/6K1",
     false},
    {"Short - Timman, Tilburg 1991", "2b1rrk1/2pR1p2/1pq1pQp1/p3P1Kp/P1PR3P/5N2/2P2PP1/8", false},
    {"Deep Blue - Kasparov, New York 1997, game 6",
     "r1k4r/p2nb1p1/2b4p/1p1n1p2/2PP4/3Q1NB1/1P3PPP/R5K1", false},
    {"Kasparov - Topalov, Wijk aan Zee 1999", "8/Q6p/6p1/5p2/5P2/2p3P1/3r3P/2K1k3", false},
};

TEST_CASE("Every game replays to the end that another program finds") {
  REQUIRE(Games().size() == std::size(kEndings));
  for (size_t i = 0; i < Games().size(); ++i) {
    const Game& game = Games()[i];
    INFO(game.title);
    CHECK(game.title == kEndings[i].title);
    const Position end = ReplayWhole(game).back();
    CHECK(end.Placement() == kEndings[i].placement);
    CHECK(end.IsCheckmate() == kEndings[i].mate);
    CHECK(game.ends_in_mate == kEndings[i].mate);
  }
}

TEST_CASE("A mistyped move is found") {
  std::string error;
  CHECK(Replay({"typo", "e2e4 e7e5 g1e4", false}, &error).size() == 3);
  CHECK(error == "typo, half-move 3, \"g1e4\": not a possible move");
  error.clear();
  Replay({"typo", "e2e4 z7e5", false}, &error);
  CHECK(error == "typo, half-move 2, \"z7e5\": not a possible move");
  error.clear();
  // The e-pawn is pinned by the queen on e7 once the d-pawns are gone.
  Replay({"pinned", "e2e4 d7d5 e4d5 d8d5 a2a3 d5e5 e1e2", false}, &error);
  CHECK(error == "pinned, half-move 7, \"e1e2\": the king is left in check");
}

// The number of sequences of legal moves, known to everybody who writes a move generator (perft).
uint64_t CountSequences(const Position& position, int moves) {
  if (moves == 0) return 1;
  MoveList list;
  position.PseudoLegalMoves(&list);
  uint64_t count = 0;
  for (const Move& move : list) {
    Position next = position;
    next.Apply(move);
    if (!next.InCheck(position.turn())) count += CountSequences(next, moves - 1);
  }
  return count;
}

TEST_CASE("Move sequences are as many as published") {
  CHECK(CountSequences(Position::Start(), 1) == 20);
  CHECK(CountSequences(Position::Start(), 2) == 400);
  CHECK(CountSequences(Position::Start(), 3) == 8902);
  CHECK(CountSequences(Position::Start(), 4) == 197281);
}

TEST_CASE("Castling, en passant and promotion move what they should") {
  const Position castled = After("e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 e1g1");
  CHECK(castled.Placement() == "r1bqk1nr/pppp1ppp/2n5/2b1p3/2B1P3/5N2/PPPP1PPP/RNBQ1RK1");
  CHECK_FALSE(castled.may_castle(kWhite, true));
  CHECK_FALSE(castled.may_castle(kWhite, false));
  CHECK(castled.may_castle(kBlack, true));

  const Position jumped = After("e2e4 a7a6 e4e5 d7d5");
  CHECK(jumped.en_passant() == 8 * 5 + 3);
  CHECK(After("e2e4 a7a6 e4e5 d7d5 e5d6").Placement() ==
        "rnbqkbnr/1pp1pppp/p2P4/8/8/8/PPPP1PPP/RNBQKBNR");

  const Position promoted = After("a2a4 b7b5 a4b5 a7a6 b5a6 c8b7 a6b7 h7h6 b7a8n");
  CHECK(promoted.Placement() == "Nn1qkbnr/2ppppp1/7p/8/8/8/1PPPPPPP/RNBQKBNR");
  CHECK_FALSE(promoted.may_castle(kBlack, false));
}

TEST_CASE("The start is encoded as the layout says") {
  const Record record = Encode(Position::Start(), Mate::kNone);
  CHECK(record.score == 0);
  int ones = 0;
  for (int bit = 0; bit < 1552; ++bit) ones += BitAt(record, bit);
  // 32 pieces; squares attacked by side: 8 by pawns, 6 by knights, 4 by bishops, 4 by rooks, 5 by
  // the queen, 5 by the king; and four castling flags.
  CHECK(ones == 32 + 2 * (8 + 6 + 4 + 4 + 5 + 5) + 4);
  CHECK(BitAt(record, PlaneBit(1, 4, 0)));      // own pawn on e2
  CHECK(BitAt(record, PlaneBit(6, 4, 1)));      // the opponent's on e7
  CHECK(BitAt(record, PlaneBit(2, 5, 4 + 2)));  // an own knight attacks f3
  CHECK(BitAt(record, PlaneBit(5, 0, 4 + 3)));  // the opponent's a6
  CHECK(BitAt(record, PlaneBit(0, 4, 20)));     // own king on e1
  for (int flag = 0; flag < 10; ++flag) CHECK(BitAt(record, 1536 + flag) == (flag < 4));
  CHECK_FALSE(BitAt(record, kMateBit));
}

TEST_CASE("Black sees the board mirrored") {
  const Record record = Encode(After("e2e4"), Mate::kNone);
  CHECK(BitAt(record, PlaneBit(0, 4, 20)));  // own king in the first row: e8
  CHECK(BitAt(record, PlaneBit(4, 4, 1)));   // the white pawn on e4 in the fifth
  CHECK(BitAt(record, 1536 + 4));
  CHECK(BitAt(record, 1536 + 5));
  // White's bishop has 5 squares more and its queen 4; the pawn attacks as many as before.
  CHECK(record.score == -4 * (5 + 4));
}

TEST_CASE("Mates carry their sign") {
  const Position end = ReplayWhole(Games()[0]).back();
  const Record mated = Encode(end, Mate::kMated);
  CHECK(BitAt(mated, kMateBit));
  CHECK(mated.score == -1);
  CHECK(Encode(end, Mate::kMatesNext).score == 1);
}

TEST_CASE("The stream is reproducible, varied and full of plausible positions") {
  PositionStream one(7), same(7), other(8);
  const int num_real = one.num_real();
  CHECK(num_real > 900);
  std::set<std::string> distinct;
  int differs = 0, mates = 0, ones = 0;
  constexpr int kRecords = 20000;
  for (int i = 0; i < kRecords; ++i) {
    const Record record = one.Next(), again = same.Next(), another = other.Next();
    REQUIRE(record.bits == again.bits);
    REQUIRE(record.score == again.score);
    differs += record.bits != another.bits;
    distinct.emplace(record.bits.begin(), record.bits.end());
    // One king each.
    int kings[2] = {};
    for (int square = 0; square < 64; ++square) {
      kings[0] += BitAt(record, square * 24 + 20);
      kings[1] += BitAt(record, square * 24 + 21);
    }
    REQUIRE(kings[0] == 1);
    REQUIRE(kings[1] == 1);
    for (int bit = kMateBit + 1; bit < 1552; ++bit) REQUIRE_FALSE(BitAt(record, bit));
    mates += BitAt(record, kMateBit);
    if (BitAt(record, kMateBit)) REQUIRE(std::abs(record.score) == 1);
    for (uint8_t byte : record.bits) ones += std::popcount(byte);
  }
  CHECK(differs > kRecords - num_real - 100);
  CHECK(distinct.size() > kRecords * 95 / 100);
  CHECK(mates > 10);
  CHECK(ones / kRecords > 80);
  CHECK(ones / kRecords < 250);
}

}  // namespace
}  // namespace penstock::chess
