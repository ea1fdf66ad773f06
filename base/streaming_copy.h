// A copy of much memory for somebody else: what is written goes past the caches, so that its old
// contents are not fetched before, and nothing that is in use is driven out.
//
// Threads:  any; whatever is published with release order afterwards is seen with what was copied.
// Cost:     of 150 KB that another processor has just written, some 13 µs in the place of 22 by
//           memcpy(). Whoever reads the target soon, on the same processor, pays more than that.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// As memcpy().
void CopyPastCaches(uint8_t* to, const uint8_t* from, size_t bytes);

}  // namespace penstock
