#include "client/samples/chess/position_stream.h"

#include <string>

#include "client/samples/chess/games.h"

namespace penstock::chess {
namespace {

constexpr int kLineMoves = 24;  // after which random play resembles no game any more
constexpr int kAttempts = 8;

}  // namespace

PositionStream::PositionStream(uint64_t seed) : draws_(seed, 0) {
  for (const Game& game : Games()) {
    std::string error;
    const std::vector<Position> positions = Replay(game, &error);
    for (size_t i = 0; i < positions.size(); ++i) {
      const bool last = i + 1 == positions.size();
      Mate mate = Mate::kNone;
      if (game.ends_in_mate && last) mate = Mate::kMated;
      if (game.ends_in_mate && i + 2 == positions.size()) mate = Mate::kMatesNext;
      real_.push_back(Encode(positions[i], mate));
      if (!last) starts_.push_back(positions[i]);
    }
  }
  StartLine();
}

Record PositionStream::Next() {
  if (next_real_ < real_.size()) return real_[next_real_++];
  const Record result = held_;
  if (line_left_ == 0 || !MoveRandomly()) {
    StartLine();
    return result;
  }
  --line_left_;
  if (!position_.IsCheckmate()) {
    held_ = Encode(position_, Mate::kNone);
    return result;
  }
  Record mates = result;
  MarkMatesNext(&mates);
  held_ = Encode(position_, Mate::kMated);
  line_left_ = 0;
  return mates;
}

bool PositionStream::MoveRandomly() {
  MoveList list;
  position_.PseudoLegalMoves(&list);
  if (list.count == 0) return false;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Position next = position_;
    next.Apply(list.moves[Draw(list.count)]);
    if (next.InCheck(position_.turn())) continue;
    position_ = next;
    return true;
  }
  return false;
}

void PositionStream::StartLine() {
  // The start itself is one of the real positions, so the line begins one move later.
  do {
    position_ = starts_[Draw(starts_.size())];
  } while (!MoveRandomly());
  line_left_ = kLineMoves;
  held_ = Encode(position_, position_.IsCheckmate() ? Mate::kMated : Mate::kNone);
  if ((held_.bits[kMateBit / 8] & 0x80 >> kMateBit % 8) != 0) line_left_ = 0;
}

}  // namespace penstock::chess
