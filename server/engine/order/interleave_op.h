// Turns of datasets that are made for each element of the input, of its path or of nothing of it:
// tf.data's interleave over paths, and flat_map with a cycle of one. Datasets of an element's
// values are those of element_turns.h.
//
// The position is the pass and the number of elements taken in it. Where the nested datasets know
// their lengths, going there is arithmetic on those of the files so far (interleave_state.h);
// elsewhere what goes before is pulled and dropped.
//
// Threads: one at a time (the front's lock).
#pragma once

#include <cstdint>

#include "server/engine/order/dataset.h"
#include "server/engine/order/order_op.h"

namespace penstock {

// `nested` makes the datasets, of elements of `width` references, and must outlive the plan's
// executors.
OrderFactory InterleaveOrder(const OrderNode& nested, uint32_t width, uint32_t cycle_length,
                             uint64_t block_length);

}  // namespace penstock
