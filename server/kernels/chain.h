// Two or three operations of float32 as one instruction of a lane program: `(x + a) * b`,
// `… * (x + a)` and `… / (x * x + a)`.
//
// An instruction of four or eight vectors costs about as much to get to as two operations on them
// cost; what expressions have most of are short chains of the four basic operations on a column and
// constants. The last two need nothing put aside, so that a program of such chains alone has eight
// vectors for its accumulator.
//
// Threads:  as server/kernels/lane_program.h.
#pragma once

#include "server/kernels/arithmetic.h"

namespace penstock::kernels {

enum class ChainKind : uint8_t {
  kBehind,  // accumulator = second(first(column, memory), broadcast or memory)
  kOnto,    // accumulator = second(first(column, broadcast), accumulator)
};

// The instruction's operands are those of the load, of the first operation and of the second one,
// which stand behind one another; it does the work of all three, and of the store behind them if
// form.stored. `form` has the memory's type as `loaded`; with kBehind it may push. The second one's
// operand is memory only where the first one's is. Null for all but kWide and kPair without 64-bit
// types, and for operations that make no chain.
Handler FindChain(ChainKind kind, Arithmetic first, Arithmetic second, Form form);

// accumulator = third(second(first(column, memory), broadcast), accumulator), of four instructions
// in the same way. Of float32 columns and kWide alone: what goes aside has four vectors anyway.
Handler FindLongChain(Arithmetic first, Arithmetic second, Arithmetic third, Form form);

}  // namespace penstock::kernels
