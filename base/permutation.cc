#include "base/permutation.h"

#include <cmath>

#include "base/random.h"

namespace penstock {

Permutation::Permutation(uint64_t size, uint64_t key, uint64_t epoch) : size_(size) {
  a_ = static_cast<uint64_t>(std::sqrt(static_cast<double>(size)));
  if (a_ == 0) a_ = 1;
  // In a single row of three there would be nothing but rotations.
  if (size == 3) a_ = 2;
  b_ = size / a_ + (size % a_ != 0 ? 1 : 0);
  if (b_ == 0) b_ = 1;
  for (int round = 0; round < kRounds; ++round) {
    const PhiloxBlock block =
        Philox4x32({static_cast<uint32_t>(round), 0x676c6f62u, static_cast<uint32_t>(epoch),
                    static_cast<uint32_t>(epoch >> 32)},
                   {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
    keys_[round] = uint64_t{block[1]} << 32 | block[0];
  }
}

uint64_t Permutation::Once(uint64_t number) const {
  uint64_t left = number / b_;
  uint64_t right = number % b_;
  for (int round = 0; round < kRounds; round += 2) {
    left += Below(Mix(right, keys_[round]), a_);
    if (left >= a_) left -= a_;
    right += Below(Mix(left, keys_[round + 1]), b_);
    if (right >= b_) right -= b_;
  }
  return left * b_ + right;
}

uint64_t Permutation::OnceBack(uint64_t number) const {
  uint64_t left = number / b_;
  uint64_t right = number % b_;
  for (int round = kRounds - 2; round >= 0; round -= 2) {
    right += b_ - Below(Mix(left, keys_[round + 1]), b_);
    if (right >= b_) right -= b_;
    left += a_ - Below(Mix(right, keys_[round]), a_);
    if (left >= a_) left -= a_;
  }
  return left * b_ + right;
}

}  // namespace penstock
