// What a segment's header says where its steps have the rows of one of several hosts, who divide
// each batch of the stream (World of control.proto). How many rows a step has is then no matter of
// the first axis of its tensors, and no row has a number that a consumer could count by: one with a
// batch size of its own is refused.
#pragma once

#include <cstdint>

namespace penstock::ring {

// In the place of SegmentHeader::pass_last_rows.
inline constexpr uint32_t kDividedAmongHosts = UINT32_MAX;

}  // namespace penstock::ring
