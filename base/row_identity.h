// Which element a row is, as random functions know it: what their draws are keyed by, beside seed
// and stage.
//
// A path is 64 bits that depend on every number on the way to the element: the file, offset and
// epoch of its record; behind a section, those of the element that it was made of and its number
// among the elements made of that one; of a tuple, those of all members; of one that comes more
// than once, a mark that tells its copies apart (server/engine/order/copies.h). It never depends on
// the row's place in a block or a batch, on threads, or on time. Two elements of one stream have
// the same path with a probability of 2^-64.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

// What random functions drew, for somebody who asked.
struct DrawLog {
  struct Draw {
    std::string call;  // the stage, the function, and where it stands in the text
    std::string name;  // of the number
    double value = 0;
  };
  std::vector<Draw> draws;
};

struct RowIdentity {
  uint64_t path = 0;
  DrawLog* log = nullptr;  // null but where one row is shown; one thread
};

// One number further on the way. Every bit of both arguments reaches every bit of the result (the
// finaliser of SplitMix64, from Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
// Generators", OOPSLA 2014).
inline uint64_t MixPath(uint64_t path, uint64_t number) {
  const auto finalise = [](uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  };
  return finalise(finalise(path + 0x9E3779B97F4A7C15u) + number);
}

}  // namespace penstock
