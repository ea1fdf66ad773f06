// Units of time in nanoseconds, as all times are inside.
//
// Threads:  constants.
#pragma once

#include <cstdint>

namespace penstock::ring {

inline constexpr uint64_t kNsPerMs = 1'000'000;
inline constexpr uint64_t kNsPerSecond = 1'000'000'000;

}  // namespace penstock::ring
