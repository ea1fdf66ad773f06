// Variables of a beta distribution.
//
// Threads:  as Draws.
// Cost:     some microsecond; how many words are drawn depends on what is drawn.
#pragma once

#include "server/expr/draws.h"

namespace penstock::expr {

// From 0 to 1, with the density x^(a - 1) (1 - x)^(b - 1). REQUIRES: both are above 0.
double DrawBeta(Draws& draws, double a, double b);

}  // namespace penstock::expr
