// The order of `pack`: documents become sequences, window by window.
//
// A sequence is one reference, to a cell that says which pieces of which documents it is made of (server/engine/read/packed_row.h). The
// position is that of the input in front of the window, and the number of the sequence in it; going there packs the window again.
//
// Threads:  one at a time (the front's lock).
// Owns:     the references of a window's documents that no sequence has yet.
// Limits:   a window ends behind kMaxWindowTokens, at the next multiple of 64 documents.
// Cost:     O(log n) a document, n being the documents of a window; it looks at the number of tokens of each, and at no token.
#pragma once

#include <cstdint>
#include <memory>

#include "server/engine/order/order_op.h"
#include "server/engine/order/packing.h"

namespace penstock {

struct PackGauge;

struct PackWindows {
  static constexpr uint64_t kMaxWindowTokens = uint64_t{1} << 26;

  PackRules rules;
  uint64_t window = 10'000;  // documents
  int stage = 0;             // whose gauge counts
};

// Over elements in cells, whose number (ElementCells::First) is that of their tokens, from 0 to 2^31 - 1.
std::unique_ptr<OrderOp> PackOrder(FrontContext& context, const PackWindows& windows,
                                   std::unique_ptr<OrderOp> input);

}  // namespace penstock
