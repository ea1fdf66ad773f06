// The only source of chance in a simulated history.
//
// Threads:  one thread.
#pragma once

#include <cstdint>
#include <random>

namespace penstock::test {

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}

  uint64_t Below(uint64_t bound) { return engine_() % bound; }
  // From `least` to `most`, both included.
  uint64_t Between(uint64_t least, uint64_t most) { return least + Below(most - least + 1); }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace penstock::test
