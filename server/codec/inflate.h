// Whole compressed strings: gzip (RFC 1952), zlib (RFC 1950), by ISA-L.
//
// Threads:  any; no state.
// Limits:   kInflatedBytesMax of result, so that a small record cannot ask for all memory. What it
//           grows to is charged (base/large_charge.h) until the caller's charge goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/large_charge.h"

namespace penstock {

inline constexpr size_t kInflatedBytesMax = size_t{1} << 28;

enum class Wrapping : uint8_t { kGzip, kZlib };

// What all members of the string hold, one after another. DataLoss for what is malformed, cut, or
// of another checksum; ResourceExhausted beyond the limit.
absl::StatusOr<std::string> Inflate(const uint8_t* data, size_t size, Wrapping wrapping,
                                    LargeCharge& charge);

}  // namespace penstock
