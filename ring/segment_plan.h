// Where everything in a segment lies: the arithmetic of layout.h, without any memory.
//
// Threads:  any; no state.
// Limits:   those of layout.h; every product and sum is checked, and a segment is below 2^62 bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "ring/layout.h"
#include "ring/status.h"
#include "ring/writer.h"

namespace penstock::ring {

struct SegmentPlan {
  std::vector<TensorEntry> tensors;
  uint32_t ring_entries = 0;
  uint64_t tensor_table_offset = 0;
  uint64_t slot_table_offset = 0;
  uint64_t ring_table_offset = 0;
  uint64_t extent_table_offset = 0;
  uint64_t structure_offset = 0;
  uint64_t structure_bytes = 0;
  uint64_t slot_data_offset = 0;
  uint64_t slot_stride = 0;
  uint64_t variable_offset = 0;
  uint64_t variable_bytes = 0;
  bool variable_grows = false;
  uint64_t segment_bytes = 0;
};

// Bytes of one element; 0 for codes that have no fixed size.
uint64_t ElementBytes(uint8_t dtype);

// Whether only the data tells the size of one of its axes.
bool HasUnknownAxis(const TensorEntry& entry);

// Whether a tensor has the same place in every slot: it is dense, and no axis is unknown.
bool IsFixed(const TensorEntry& entry);

// How many of a tensor's parts are in use. REQUIRES: an entry as PlanSegment makes them.
uint32_t NumParts(const TensorEntry& entry);

// kInvalidArgument names the tensor and the limit.
Status PlanSegment(const SegmentOptions& options, SegmentPlan* out);

}  // namespace penstock::ring
