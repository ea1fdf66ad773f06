// Well-known games, as the moves that were played.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/samples/chess/position.h"

namespace penstock::chess {

struct Game {
  std::string_view title;
  std::string_view moves;  // in coordinate form, separated by single spaces
  bool ends_in_mate;
};

std::span<const Game> Games();

// Plays a game through: the position before its first move and after each move. `error` is set, and
// the positions end, at the first move that is not one the rules allow.
std::vector<Position> Replay(const Game& game, std::string* error);

}  // namespace penstock::chess
