// What a stage may ask of the records that it parses, whatever their format.
//
// Threads:  constants.
#pragma once

#include <cstdint>

namespace penstock {

inline constexpr int kMaxFeatures = 4096;
// Of one feature, in the axes of known size: a default is kept in memory.
inline constexpr int64_t kMaxValues = 1 << 26;

}  // namespace penstock
