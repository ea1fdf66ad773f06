// The largest sounds that are decoded, whatever their format.
#pragma once

#include <cstdint>

namespace penstock {

inline constexpr int64_t kSoundChannelsMax = 1024;
// Of all channels: a row's.
inline constexpr int64_t kSoundValuesMax = int64_t{1} << 28;

}  // namespace penstock
