// Turns of datasets that are each made of the values of one element of the input: tf.data's
// interleave of any elements, and flat_map with a cycle of one.
//
// The position is that of the input in front of the oldest element whose dataset is open, and for
// each place of the cycle which element it holds and how many of its dataset's elements have been
// taken. Going there opens as many datasets as were open.
//
// Threads: one at a time (the front's lock).
// Limits:  kMaxElementCycleLength. Elements behind the oldest one whose dataset is open stay in
//          memory until that one ends.
#pragma once

#include <cstdint>

#include "server/engine/order/dataset.h"
#include "server/engine/order/order_op.h"

namespace penstock {

// So that a cursor holds the whole cycle.
constexpr uint32_t kMaxElementCycleLength = 64;

// `nested` makes the datasets (FrontContext::window is the element), of elements of `width`
// references, and must outlive the plan's executors. REQUIRES: cycle_length <=
// kMaxElementCycleLength.
OrderFactory ElementTurns(const OrderNode& nested, uint32_t width, uint32_t cycle_length,
                          uint64_t block_length);

}  // namespace penstock
