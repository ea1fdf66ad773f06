#include "client/samples/chess/games.h"

#include <algorithm>
#include <optional>

namespace penstock::chess {
namespace {

constexpr Game kGames[] = {
    {"Legal - Saint-Brie, Paris 1750",
     "e2e4 e7e5 g1f3 d7d6 f1c4 c8g4 b1c3 g7g6 f3e5 g4d1 c4f7 e8e7 c3d5", true},
    {"Anderssen - Kieseritzky, the Immortal Game, London 1851",
     "e2e4 e7e5 f2f4 e5f4 f1c4 d8h4 e1f1 b7b5 c4b5 g8f6 g1f3 h4h6 d2d3 f6h5 f3h4 h6g5 h4f5 "
     "c7c6 g2g4 h5f6 h1g1 c6b5 h2h4 g5g6 h4h5 g6g5 d1f3 f6g8 c1f4 g5f6 b1c3 f8c5 c3d5 f6b2 "
     "f4d6 c5g1 e4e5 b2a1 f1e2 b8a6 f5g7 e8d8 f3f6 g8f6 d6e7",
     true},
    {"Anderssen - Dufresne, the Evergreen Game, Berlin 1852",
     "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 b2b4 c5b4 c2c3 b4a5 d2d4 e5d4 e1g1 d4d3 d1b3 d8f6 e4e5 "
     "f6g6 f1e1 g8e7 c1a3 b7b5 b3b5 a8b8 b5a4 a5b6 b1d2 c8b7 d2e4 g6f5 c4d3 f5h5 e4f6 g7f6 "
     "e5f6 h8g8 a1d1 h5f3 e1e7 c6e7 a4d7 e8d7 d3f5 d7e8 f5d7 e8f8 a3e7",
     true},
    {"Paulsen - Morphy, New York 1857",
     "e2e4 e7e5 g1f3 b8c6 b1c3 g8f6 f1b5 f8c5 e1g1 e8g8 f3e5 f8e8 e5c6 d7c6 b5c4 b7b5 c4e2 "
     "f6e4 c3e4 e8e4 e2f3 e4e6 c2c3 d8d3 b2b4 c5b6 a2a4 b5a4 d1a4 c8d7 a1a2 a8e8 a4a6 d3f3 "
     "g2f3 e6g6 g1h1 d7h3 f1d1 h3g2 h1g1 g2f3 g1f1 f3g2 f1g1 g2h3 g1h1 b6f2 a6f1 h3f1 d1f1 "
     "e8e2 a2a1 g6h6 d2d4 f2e3",
     false},
    {"Morphy - Duke of Brunswick and Count Isouard, the Opera Game, Paris 1858",
     "e2e4 e7e5 g1f3 d7d6 d2d4 c8g4 d4e5 g4f3 d1f3 d6e5 f1c4 g8f6 f3b3 d8e7 b1c3 c7c6 c1g5 "
     "b7b5 c3b5 c6b5 c4b5 b8d7 e1c1 a8d8 d1d7 d8d7 h1d1 e7e6 b5d7 f6d7 b3b8 d7b8 d1d8",
     true},
    {"Lasker - Bauer, Amsterdam 1889",
     "f2f4 d7d5 e2e3 g8f6 b2b3 e7e6 c1b2 f8e7 f1d3 b7b6 g1f3 c8b7 b1c3 b8d7 e1g1 e8g8 c3e2 "
     "c7c5 e2g3 d8c7 f3e5 d7e5 b2e5 c7c6 d1e2 a7a6 g3h5 f6h5 d3h7 g8h7 e2h5 h7g8 e5g7 g8g7 "
     "h5g4 g7h7 f1f3 e6e5 f3h3 c6h6 h3h6 h7h6 g4d7 e7f6 d7b7 h6g7 a1f1 a8b8 b7d7 f8d8 d7g4 "
     "g7f8 f4e5 f6g7 e5e6 b8b7 g4g6 f7f6 f1f6 g7f6 g6f6 f8e8 f6h8 e8e7 h8g7 e7e6 g7b7 d8d6 "
     "b7a6 d5d4 e3d4 c5d4 h2h4 d4d3 a6d3",
     false},
    {"Steinitz - von Bardeleben, Hastings 1895",
     "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 c2c3 g8f6 d2d4 e5d4 c3d4 c5b4 b1c3 d7d5 e4d5 f6d5 e1g1 "
     "c8e6 c1g5 b4e7 c4d5 e6d5 c3d5 d8d5 g5e7 c6e7 f1e1 f7f6 d1e2 d5d7 a1c1 c7c6 d4d5 c6d5 "
     "f3d4 e8f7 d4e6 h8c8 e2g4 g7g6 e6g5 f7e8 e1e7 e8f8 e7f7 f8g8 f7g7 g8h8 g7h7",
     false},
    {"Rotlewi - Rubinstein, Lodz 1907",
     "d2d4 d7d5 g1f3 e7e6 e2e3 c7c5 c2c4 b8c6 b1c3 g8f6 d4c5 f8c5 a2a3 a7a6 b2b4 c5d6 c1b2 "
     "e8g8 d1d2 d8e7 f1d3 d5c4 d3c4 b7b5 c4d3 f8d8 d2e2 c8b7 e1g1 c6e5 f3e5 d6e5 f2f4 e5c7 "
     "e3e4 a8c8 e4e5 c7b6 g1h1 f6g4 d3e4 e7h4 g2g3 c8c3 g3h4 d8d2 e2d2 b7e4 d2g2 c3h3",
     false},
    {"Reti - Tartakower, Vienna 1910",
     "e2e4 c7c6 d2d4 d7d5 b1c3 d5e4 c3e4 g8f6 d1d3 e7e5 d4e5 d8a5 c1d2 a5e5 e1c1 f6e4 d3d8 "
     "e8d8 d2g5 d8c7 g5d8",
     true},
    {"Edward Lasker - Thomas, London 1912",
     "d2d4 e7e6 g1f3 f7f5 b1c3 g8f6 c1g5 f8e7 g5f6 e7f6 e2e4 f5e4 c3e4 b7b6 f3e5 e8g8 f1d3 "
     "c8b7 d1h5 d8e7 h5h7 g8h7 e4f6 h7h6 e5g4 h6g5 h2h4 g5f4 g2g3 f4f3 d3e2 f3g2 h1h2 g2g1 "
     "e1d2",
     true},
    {"Capablanca - Marshall, New York 1918",
     "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5a4 g8f6 e1g1 f8e7 f1e1 b7b5 a4b3 e8g8 c2c3 d7d5 e4d5 "
     "f6d5 f3e5 c6e5 e1e5 d5f6 e5e1 e7d6 h2h3 f6g4 d1f3 d8h4 d2d4 g4f2 e1e2 c8g4 h3g4 d6h2 "
     "g1f1 h2g3 e2f2 h4h1 f1e2 g3f2 c1d2 f2h4 f3h3 a8e8 e2d3 h1f1 d3c2 h4f2 h3f3 f1g1 b3d5 "
     "c7c5 d4c5 f2c5 b2b4 c5d6 a2a4 a6a5 a4b5 a5b4 a1a6 b4c3 b1c3 d6b4 b5b6 b4c3 d2c3 h7h6 "
     "b6b7 e8e3 d5f7",
     false},
    {"Saemisch - Nimzowitsch, the Immortal Zugzwang Game, Copenhagen 1923",
     "d2d4 g8f6 c2c4 e7e6 g1f3 b7b6 g2g3 c8b7 f1g2 f8e7 b1c3 e8g8 e1g1 d7d5 f3e5 c7c6 c4d5 "
     "c6d5 c1f4 a7a6 a1c1 b6b5 d1b3 b8c6 e5c6 b7c6 h2h3 d8d7 g1h2 f6h5 f4d2 f7f5 b3d1 b5b4 "
     "c3b1 c6b5 f1g1 e7d6 e2e4 f5e4 d1h5 f8f2 h5g5 a8f8 h2h1 f8f5 g5e3 b5d3 c1e1 h7h6",
     false},
    {"Botvinnik - Capablanca, AVRO 1938",
     "d2d4 g8f6 c2c4 e7e6 b1c3 f8b4 e2e3 d7d5 a2a3 b4c3 b2c3 c7c5 c4d5 e6d5 f1d3 e8g8 g1e2 "
     "b7b6 e1g1 c8a6 d3a6 b8a6 c1b2 d8d7 a3a4 f8e8 d1d3 c5c4 d3c2 a6b8 a1e1 b8c6 e2g3 c6a5 "
     "f2f3 a5b3 e3e4 d7a4 e4e5 f6d7 c2f2 g7g6 f3f4 f7f5 e5f6 d7f6 f4f5 e8e1 f1e1 a8e8 e1e6 "
     "e8e6 f5e6 g8g7 f2f4 a4e8 f4e5 e8e7 b2a3 e7a3 g3h5 g6h5 e5g5 g7f8 g5f6 f8g8 e6e7 a3c1 "
     "g1f2 c1c2 f2g3 c2d3 g3h4 d3e4 h4h5 e4e2 h5h4 e2e4 g2g4 e4e1 h4h5",
     false},
    {"D. Byrne - Fischer, the Game of the Century, New York 1956",
     "g1f3 g8f6 c2c4 g7g6 b1c3 f8g7 d2d4 e8g8 c1f4 d7d5 d1b3 d5c4 b3c4 c7c6 e2e4 b8d7 a1d1 "
     "d7b6 c4c5 c8g4 f4g5 b6a4 c5a3 a4c3 b2c3 f6e4 g5e7 d8b6 f1c4 e4c3 e7c5 f8e8 e1f1 g4e6 "
     "c5b6 e6c4 f1g1 c3e2 g1f1 e2d4 f1g1 d4e2 g1f1 e2c3 f1g1 a7b6 a3b4 a8a4 b4b6 c3d1 h2h3 "
     "a4a2 g1h2 d1f2 h1e1 e8e1 b6d8 g7f8 f3e1 c4d5 e1f3 f2e4 d8b8 b7b5 h3h4 h7h5 f3e5 g8g7 "
     "h2g1 f8c5 g1f1 e4g3 f1e1 c5b4 e1d1 d5b3 d1c1 g3e2 c1b1 e2c3 b1c1 a2c2",
     true},
    {"Fischer - Spassky, Reykjavik 1972, game 6",
     "c2c4 e7e6 g1f3 d7d5 d2d4 g8f6 b1c3 f8e7 c1g5 e8g8 e2e3 h7h6 g5h4 b7b6 c4d5 f6d5 h4e7 "
     "d8e7 c3d5 e6d5 a1c1 c8e6 d1a4 c7c5 a4a3 f8c8 f1b5 a7a6 d4c5 b6c5 e1g1 a8a7 b5e2 b8d7 "
     "f3d4 e7f8 d4e6 f7e6 e3e4 d5d4 f2f4 f8e7 e4e5 c8b8 e2c4 g8h8 a3h3 d7f8 b2b3 a6a5 f4f5 "
     "e6f5 f1f5 f8h7 c1f1 e7d8 h3g3 a7e7 h2h4 b8b7 e5e6 b7c7 g3e5 d8e8 a2a4 e8d8 f1f2 d8e8 "
     "f2f3 e8d8 c4d3 d8e8 e5e4 h7f6 f5f6 g7f6 f3f6 h8g8 d3c4 g8h8 e4f4",
     false},
    {"Short - Timman, Tilburg 1991",
     "e2e4 g8f6 e4e5 f6d5 d2d4 d7d6 g1f3 g7g6 f1c4 d5b6 c4b3 f8g7 d1e2 b8c6 e1g1 e8g8 h2h3 "
     "a7a5 a2a4 d6e5 d4e5 c6d4 f3d4 d8d4 f1e1 e7e6 b1d2 b6d5 d2f3 d4c5 e2e4 c5b4 b3c4 d5b6 "
     "b2b3 b6c4 b3c4 f8e8 e1d1 b4c5 e4h4 b7b6 c1e3 c5c6 e3h6 g7h8 d1d8 c8b7 a1d1 h8g7 d8d7 "
     "e8f8 h6g7 g8g7 d1d4 a8e8 h4f6 g7g8 h3h4 h7h5 g1h2 e8c8 h2g3 c8e8 g3f4 b7c8 f4g5",
     false},
    {"Deep Blue - Kasparov, New York 1997, game 6",
     "e2e4 c7c6 d2d4 d7d5 b1c3 d5e4 c3e4 b8d7 e4g5 g8f6 f1d3 e7e6 g1f3 h7h6 g5e6 d8e7 e1g1 "
     "f7e6 d3g6 e8d8 c1f4 b7b5 a2a4 c8b7 f1e1 f6d5 f4g3 d8c8 a4b5 c6b5 d1d3 b7c6 g6f5 e6f5 "
     "e1e7 f8e7 c2c4",
     false},
    {"Kasparov - Topalov, Wijk aan Zee 1999",
     "e2e4 d7d6 d2d4 g8f6 b1c3 g7g6 c1e3 f8g7 d1d2 c7c6 f2f3 b7b5 g1e2 b8d7 e3h6 g7h6 d2h6 "
     "c8b7 a2a3 e7e5 e1c1 d8e7 c1b1 a7a6 e2c1 e8c8 c1b3 e5d4 d1d4 c6c5 d4d1 d7b6 g2g3 c8b8 "
     "b3a5 b7a8 f1h3 d6d5 h6f4 b8a7 h1e1 d5d4 c3d5 b6d5 e4d5 e7d6 d1d4 c5d4 e1e7 a7b6 f4d4 "
     "b6a5 b2b4 a5a4 d4c3 d6d5 e7a7 a8b7 a7b7 d5c4 c3f6 a4a3 f6a6 a3b4 c2c3 b4c3 a6a1 c3d2 "
     "a1b2 d2d1 h3f1 d8d2 b7d7 d2d7 f1c4 b5c4 b2h8 d7d3 h8a8 c4c3 a8a4 d1e1 f3f4 f7f5 b1c1 "
     "d3d2 a4a7",
     false},
};

}  // namespace

std::span<const Game> Games() { return kGames; }

std::vector<Position> Replay(const Game& game, std::string* error) {
  std::vector<Position> positions = {Position::Start()};
  std::string_view rest = game.moves;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const std::optional<Move> move = ParseMove(word);
    Position next = positions.back();
    if (!move || !next.IsPseudoLegal(*move)) {
      *error = "not a possible move";
    } else {
      next.Apply(*move);
      if (next.InCheck(positions.back().turn())) *error = "the king is left in check";
    }
    if (!error->empty()) {
      *error = std::string(game.title) + ", half-move " + std::to_string(positions.size()) +
               ", \"" + std::string(word) + "\": " + *error;
      break;
    }
    positions.push_back(next);
  }
  return positions;
}

}  // namespace penstock::chess
