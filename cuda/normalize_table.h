// Every value that `normalize` can give: of each byte, for each channel that has numbers of its
// own. A kernel looks values up in it, since two divisions for each would take longer than its way
// through memory; and it is made on the host, so that the bytes are the host's.
//
// Threads:  any.
// Owns:     nothing.
// Limits:   as in expansion.h.
// Cost:     512 divisions for each channel that has numbers of its own, once a ring.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/expansion.h"

namespace penstock::cuda {

// The bits of float16 and bfloat16, to the nearest, ties to even.
uint16_t ToHalfBits(float value);
uint16_t ToBrainBits(float value);

// Whether each channel has numbers of its own; otherwise the table is one channel's.
bool IsPerChannel(const Expansion& expansion);

// The bytes of (x / scale - mean) / deviation for x in [0, 256) of each of `channels`, in the
// expansion's dtype. float64 is computed in float64, all others in float32 and rounded.
std::vector<uint8_t> NormalizeTable(const Expansion& expansion, uint32_t channels);

}  // namespace penstock::cuda
