// The random numbers of one call of a random function for one row.
//
// A number is a function of the call's key (seed, stage, function), the row's path
// (base/row_identity.h) and how many were drawn before it, by Philox4x32-10: the same on every
// machine, whichever thread computes the row, with any size of batch.
//
// Threads:  one thread; made for each row on the stack.
// Limits:   2^34 words a row.
// Cost:     some 10 ns for four words.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/random.h"
#include "base/row_identity.h"
#include "server/expr/row_kernel.h"

namespace penstock::expr {

// What all draws of one call have in common.
struct DrawSource {
  uint64_t key = 0;
  std::string call;  // "map, image, column 9: random_crop"
};

class Draws {
 public:
  // `identity`: the kernel's last argument. Both must outlive this.
  Draws(const DrawSource& source, const RowValue& identity) : source_(source) {
    std::memcpy(&identity_, identity.data, sizeof(identity_));
  }

  // 32 random bits.
  uint32_t Word() {
    if (next_ == block_.size()) {
      block_ = Philox4x32(
          {static_cast<uint32_t>(number_), static_cast<uint32_t>(number_ >> 32),
           static_cast<uint32_t>(identity_.path), static_cast<uint32_t>(identity_.path >> 32)},
          {static_cast<uint32_t>(source_.key), static_cast<uint32_t>(source_.key >> 32)});
      ++number_;
      next_ = 0;
    }
    return block_[next_++];
  }
  uint64_t DoubleWord() {
    const uint64_t low = Word();
    return uint64_t{Word()} << 32 | low;
  }

  // In [0, 1), a multiple of 2^-53.
  double Unit() { return static_cast<double>(DoubleWord() >> 11) * 0x1p-53; }
  // In [low, high), or `low` where that is empty.
  double Between(double low, double high) {
    const double value = low + Unit() * (high - low);
    return value < high ? value : low;
  }
  // In [0, bound), but for a bias below bound / 2^64. REQUIRES: bound > 0.
  uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(DoubleWord()) * bound >> 64);
  }

  // Tells a number that was drawn to whoever wants to see it.
  void Note(std::string_view name, double value) {
    if (identity_.log != nullptr)
      identity_.log->draws.push_back({source_.call, std::string(name), value});
  }

 private:
  const DrawSource& source_;
  RowIdentity identity_;
  uint64_t number_ = 0;
  PhiloxBlock block_{};
  size_t next_ = block_.size();
};

}  // namespace penstock::expr
