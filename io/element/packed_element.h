// The bytes of an element of a compressed file of elements (element_file.h): their number as u64,
// then they as gzip (RFC 1952), by ISA-L.
//
// Threads:  any; no state.
// Owns:     nothing; what was unpacked is the arena's.
// Limits:   an element is of kMaxPackableBytes; one that claims more than deflate can make of its
//           bytes is refused before memory is asked for.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/arena.h"

namespace penstock {

// What stays below 4 GiB packed too, whatever it is.
inline constexpr uint32_t kMaxPackableBytes = 4'294'000'000;

// Of at most kMaxPackableBytes.
std::string PackElement(absl::Span<const uint8_t> element);

// At a multiple of the arena's alignment. DataLoss for bytes that PackElement() has not made.
absl::StatusOr<absl::Span<const uint8_t>> UnpackElement(absl::Span<const uint8_t> packed,
                                                        Arena& arena);

}  // namespace penstock
