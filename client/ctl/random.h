// Reproducible random numbers for sample data.
//
// Threads:  a Random belongs to one thread.
#pragma once

#include <cstdint>

namespace penstock::ctl {

// SplitMix64 (Steele, Lea and Flood, 2014): a counter and a mixing function.
class Random {
 public:
  // Different streams of one seed are independent for the purposes of sample data.
  explicit Random(uint64_t seed, uint64_t stream = 0) : state_(Mix(seed) ^ Mix(~stream)) {}

  // Uniform in [0, limit), up to a bias of limit / 2^64. REQUIRES: limit > 0.
  uint64_t Below(uint64_t limit) {
    state_ += 0x9e3779b97f4a7c15;
    return static_cast<uint64_t>(static_cast<unsigned __int128>(Mix(state_)) * limit >> 64);
  }

 private:
  static uint64_t Mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }

  uint64_t state_;
};

}  // namespace penstock::ctl
