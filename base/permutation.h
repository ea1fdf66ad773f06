// A keyed bijection of [0, size): a random order of any number of things, one at a time and in
// constant memory.
//
// An unbalanced Feistel network over Z_a × Z_b with a · b just above size: each round adds a
// function of one half to the other, which any function may be; numbers beyond size go round again
// (cycle walking; Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002). Not a
// cipher: the rounds mix like a hash.
//
// Threads:  constant after construction.
// Limits:   size below 2^62.
// Cost:     twelve multiplications and a division a round, nearly always one round.
#pragma once

#include <array>
#include <cstdint>

namespace penstock {

class Permutation {
 public:
  Permutation(uint64_t size, uint64_t key, uint64_t epoch);

  uint64_t size() const { return size_; }

  // REQUIRES: ordinal < size().
  uint64_t operator()(uint64_t ordinal) const {
    do {
      ordinal = Once(ordinal);
    } while (ordinal >= size_);
    return ordinal;
  }

  // The number that comes out as `image`.
  uint64_t Inverse(uint64_t image) const {
    do {
      image = OnceBack(image);
    } while (image >= size_);
    return image;
  }

 private:
  static constexpr int kRounds = 6;

  static uint64_t Mix(uint64_t value, uint64_t key) {
    value = (value ^ key) * 0x9e3779b97f4a7c15;
    value = (value ^ value >> 32) * 0xd6e8feb86659fd93;
    return value ^ value >> 32;
  }
  // Uniform in [0, bound) but for a bias below bound / 2^32. REQUIRES: bound < 2^32.
  static uint64_t Below(uint64_t hash, uint64_t bound) { return (hash >> 32) * bound >> 32; }

  uint64_t Once(uint64_t number) const;
  uint64_t OnceBack(uint64_t number) const;

  uint64_t size_;
  uint64_t a_;  // the left half's size, at most 2^31
  uint64_t b_;  // the right half's
  std::array<uint64_t, kRounds> keys_;
};

}  // namespace penstock
