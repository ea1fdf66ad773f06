// The seed of a random op whose spec has none. It is drawn when the plan is made and then stands in
// the plan's spec.
//
// Threads: any; no state.
#pragma once

#include <cstdint>

namespace penstock {

// 63 bits, so that it is a plain number in every language.
int64_t DrawSeed();

}  // namespace penstock
