// Seeds for calls of random functions that have none, written into the text: a spec that has been
// made a plan draws the same numbers wherever it is run again.
//
// Threads:  safe from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace penstock::expr {

// The text of an assignment, or of an expression alone, with `seed=N` in every call that lacks one;
// N comes from `draw`. A text that cannot be parsed is left as it is: who compiles it says what is
// wrong.
std::string WithSeeds(std::string_view text, const std::function<int64_t()>& draw);

// Whether a text calls a random function. One that cannot be parsed does not.
bool CallsRandom(std::string_view text);

}  // namespace penstock::expr
