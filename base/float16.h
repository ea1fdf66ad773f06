// The two floating-point types of 16 bits that C++ has no name for, made from wider ones: rounded
// to the nearest, ties to even.
//
// Threads: any; no state.
#pragma once

#include <cstdint>

namespace penstock {

// IEEE 754 binary16. Too large ones become infinite.
uint16_t Float16FromDouble(double value);

// The upper half of a float32.
uint16_t Bfloat16FromFloat(float value);

}  // namespace penstock
