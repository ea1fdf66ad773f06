// The operations of lane programs, by family. Each family is one file of kernels; its codes go with
// its lookup.
//
// Threads:  safe from any thread. The lookups return code for the current instruction set
//           (highway's dynamic dispatch).
#pragma once

#include "server/kernels/lane_program.h"

namespace penstock::kernels {

// NumPy's operators. Integer overflow wraps; integer division by zero gives 0; `minimum` and
// `maximum` pass NaN on.
enum class Arithmetic : int {
  kAdd,
  kSubtract,
  kReverseSubtract,
  kMultiply,
  kDivide,  // floating types only
  kReverseDivide,
  kFloorDivide,
  kReverseFloorDivide,
  kRemainder,
  kReverseRemainder,
  kPower,
  kReversePower,
  kMinimum,
  kMaximum,
  kAnd,  // bitwise: integers only
  kOr,
  kXor,
  kLeftShift,  // integers only; by a negative number as by all bits
  kReverseLeftShift,
  kRightShift,
  kReverseRightShift,
  kCopysign,
  kReverseCopysign,
  kFmin,
  kFmax,
  kFmod,
  kReverseFmod,
};
Handler FindArithmetic(int code, Lane lane, Form form);

// Results are int32 lanes of 0 and 1.
enum class Comparison : int {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kLogicalAnd,
  kLogicalOr,
  kLogicalXor
};
Handler FindComparison(int code, Lane lane, Form form);

// Three arguments. select(condition, a, b) takes a as the accumulator, the condition as the first
// operand (int32 lanes) and b as the second, the reverse takes b as the accumulator and a as the
// second; clip(x, low, high) takes them in order.
enum class Selection : int { kSelect, kReverseSelect, kClip };
Handler FindSelection(int code, Lane lane, Form form);

// One argument; results are as of Comparison.
enum class Test : int { kIsNan, kIsInf, kIsFinite, kSignbit, kLogicalNot };
Handler FindTest(int code, Lane lane, Form form);

// One argument. Integer types have kNegative, kAbsolute, kSign, kInvert and kSquare; floating ones
// all but kInvert.
enum class Simple : int {
  kNegative,
  kAbsolute,
  kSign,
  kInvert,
  kSqrt,
  kFloor,
  kCeil,
  kRint,
  kTrunc,
  kSquare,
  kReciprocal
};
Handler FindUnary(int code, Lane lane, Form form);

// Floating types only; at most 3 units in the last place from the true value. Formulae:
// transcendental-inl.h.
enum class Transcendental : int { kExp, kLog, kLog1p, kTanh };
Handler FindTranscendental(int code, Lane lane, Form form);

}  // namespace penstock::kernels
