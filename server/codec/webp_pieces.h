// Decodes one WebP image or frame, a large one in pieces of its file, with a look for a stop
// between two of them (base/stop_flag.h). docs/decisions/0124 says which images do not go in
// pieces, and why.
//
// Threads:  any; no state.
// Limits:   what libwebp keeps of a whole lossless image is charged (base/large_charge.h).
// Cost:     libwebp's own; in pieces up to a tenth more than one call.
#pragma once

#include <webp/decode.h>

#include <cstddef>
#include <cstdint>

namespace penstock {

// Decodes to where `config` says. `data` is a file, or a frame of one: its chunks. What has no more
// pixels than `pixels_at_once` is decoded by one call.
VP8StatusCode DecodeWebp(const uint8_t* data, size_t size, int64_t pixels_at_once,
                         WebPDecoderConfig* config);

}  // namespace penstock
