// Counter-based randomness: a number is a pure function of a key and a counter, never of a thread
// or of time.
//
// Philox4x32-10, from Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3"
// (SC 2011); the bytes are those of the paper's reference (tests/base/random_test.cc has its known
// answers).
//
// Threads:  functions and const calls from any; a generator with a position belongs to one thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace penstock {

using PhiloxBlock = std::array<uint32_t, 4>;

inline PhiloxBlock Philox4x32(PhiloxBlock counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// 64 bits that depend on every bit of all arguments; used to make the key of a stage from seed and
// name.
uint64_t MixKey(uint64_t seed, std::string_view name);

// The draws of one random op in one epoch.
//
// Threads: one thread.
class DrawSequence {
 public:
  DrawSequence(uint64_t key, uint64_t epoch)
      : key_{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)}, epoch_(epoch) {}

  // Draw number `ordinal`, uniform in [0, bound) but for a bias below bound / 2^32. REQUIRES: bound
  // > 0.
  uint32_t Below(uint64_t ordinal, uint32_t bound) {
    return static_cast<uint32_t>(uint64_t{Draw(ordinal)} * bound >> 32);
  }

  // Draw number `ordinal`, of all 32 bits.
  uint32_t Draw(uint64_t ordinal) {
    if (ordinal / 4 != block_number_) {
      block_number_ = ordinal / 4;
      block_ = Philox4x32(
          {static_cast<uint32_t>(block_number_), static_cast<uint32_t>(block_number_ >> 32),
           static_cast<uint32_t>(epoch_), static_cast<uint32_t>(epoch_ >> 32)},
          key_);
    }
    return block_[ordinal % 4];
  }

 private:
  std::array<uint32_t, 2> key_;
  uint64_t epoch_;
  uint64_t block_number_ = ~uint64_t{0};
  PhiloxBlock block_{};
};

}  // namespace penstock
