// What reading and writing of element files (element_file.h) have in common.
//
// Threads:  constants, and functions without state.
#pragma once

#include <cstdint>
#include <cstring>

namespace penstock {

inline constexpr char kElementMagic[8] = {'P', 'E', 'N', 'S', 'T', 'E', 'L', '\n'};
inline constexpr char kElementEnd[4] = {'L', 'E', 'T', 'S'};
inline constexpr uint32_t kElementsWhole = 1;

inline void StoreU32(uint8_t* out, uint32_t value) { std::memcpy(out, &value, sizeof(value)); }
inline void StoreU64(uint8_t* out, uint64_t value) { std::memcpy(out, &value, sizeof(value)); }

}  // namespace penstock
