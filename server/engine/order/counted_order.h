// The order of a source whose elements are numbered and of known number: one after another, or all
// of them permuted.
//
// Threads:  one at a time (the front's lock).
// Limits:   fewer than 2^62 elements where they are permuted.
// Cost:     any position is at hand at once; a position is one counter, or two where they are
//           permuted.
#pragma once

#include <cstdint>
#include <optional>

#include "server/engine/order/order_op.h"

namespace penstock {

// The reference of element i: {offset = start + i * step, file = first_file + i * file_step},
// modulo 2^64 and 2^32.
struct CountedElements {
  uint64_t count = 0;
  uint64_t start = 0;
  uint64_t step = 0;
  uint32_t first_file = 0;
  uint32_t file_step = 0;
};

// A random order of its own for every epoch, or the same one for all.
struct CountedShuffle {
  uint64_t key = 0;
  bool reshuffle = true;
};

OrderFactory CountedOrder(const CountedElements& elements,
                          std::optional<CountedShuffle> shuffle = std::nullopt);

}  // namespace penstock
