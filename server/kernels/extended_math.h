// Functions that are rare in pipelines: computed lane by lane in x87's extended precision and
// rounded once.
//
// Threads:  safe from any thread.
// Cost:     20 to 100 ns a value, large arguments of sine and cosine more; those two of float32
//           take 1 to 2, of float64 5 (server/kernels/sine-inl.h). What is called for each pixel
//           belongs to transcendental-inl.h.
//
// The C library's functions of long double are written for the x87 alone, so that they give the
// same bits on every machine; those of float and double choose code by the machine's instruction
// set, and do not. On arm64 they have 113 bits, which are rounded to x87's: of float32 all results
// are x86-64's, of float64 one in some ten thousand has another last bit.
#pragma once

#include "server/kernels/lane_program.h"

namespace penstock::kernels {

// Floating types only; within one unit in the last place.
enum class Extended : int {
  kSin,
  kCos,
  kTan,
  kArcsin,
  kArccos,
  kArctan,
  kSinh,
  kCosh,
  kArcsinh,
  kArccosh,
  kArctanh,
  kExp2,
  kExpm1,
  kLog2,
  kLog10,
  kCbrt,
};
Handler FindExtended(int code, Lane lane, Form form);

// Of two numbers.
enum class ExtendedPair : int {
  kArctan2,
  kReverseArctan2,
  kHypot,
  kLogaddexp,
};
Handler FindExtendedPair(int code, Lane lane, Form form);

}  // namespace penstock::kernels
