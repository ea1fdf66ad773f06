// An endless, reproducible sequence of chess records: first every position of the well-known games
// in turn, then positions that random legal moves reach from random ones of these games.
//
// Threads:  one thread.
// Cost:     about 1 us a record.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "client/samples/chess/encode.h"
#include "client/samples/chess/position.h"

namespace penstock::chess {

class PositionStream {
 public:
  // Equal seeds give equal sequences.
  explicit PositionStream(uint64_t seed);

  Record Next();

  // How many records come from the games themselves.
  int num_real() const { return static_cast<int>(real_.size()); }

 private:
  // Uniform in [0, bound).
  uint32_t Draw(size_t bound) { return draws_.Below(num_draws_++, static_cast<uint32_t>(bound)); }
  // Makes a random legal move; false when there is none, or none was found in a few attempts.
  bool MoveRandomly();
  void StartLine();

  std::vector<Position> starts_;
  std::vector<Record> real_;
  size_t next_real_ = 0;
  DrawSequence draws_;
  uint64_t num_draws_ = 0;
  Position position_;
  int line_left_ = 0;
  // The record of position_, held back until the next move shows whether it mates.
  Record held_;
};

}  // namespace penstock::chess
