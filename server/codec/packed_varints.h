// Packed runs of varints, as protobuf's repeated integers are: read with the verdict of
// wire::ReadVarint on each.
//
// Threads:  functions without state.
// Owns:     nothing.
// Cost:     eight at a time while they are of one byte; else a few nanoseconds each, without a
//           branch on a size of up to eight bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// How many varints end in [p, end).
size_t CountPackedVarints(const uint8_t* p, const uint8_t* end);

// Whether [p, end) is a run of varints.
bool CheckPackedVarints(const uint8_t* p, const uint8_t* end);

// Writes the CountPackedVarints() values of a run that fills [p, end). False, having written no
// more than that, when it is malformed. Bytes from `end` to `limit` may be loaded and change
// nothing.
bool ReadPackedVarints(const uint8_t* p, const uint8_t* end, const uint8_t* limit,
                       uint64_t* values);

}  // namespace penstock
