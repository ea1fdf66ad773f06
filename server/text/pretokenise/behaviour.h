// What becomes of the matches of a pattern when a text is cut by them.
//
// Threads:  functions without state.
// Source:   SplitDelimiterBehavior of `tokenizers`.
#pragma once

#include <cstdint>
#include <vector>

#include "server/text/parts/parts.h"
#include "server/text/unicode/classes.h"

namespace penstock::text {

enum class Behaviour : uint8_t {
  kRemoved,
  kIsolated,
  kMergedWithPrevious,
  kMergedWithNext,
  kContiguous
};

// A stretch of a text that is a match, or lies between two.
struct Stretch {
  size_t from, to;
  bool is_match;
};

absl::Status ReadBehaviour(const JsonPart& json, Behaviour* behaviour);

// `stretches`: side by side, the whole text.
void CutBy(const Piece& piece, const std::vector<Stretch>& stretches, Behaviour behaviour,
           PieceList& pieces);

// Cuts each piece at the code points that have a flag, each a match.
void CutByFlag(CharFlag flag, Behaviour behaviour, PieceList& pieces);

}  // namespace penstock::text
