// The checksum of what a batch holds.
//
// Threads:  any; no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::ctl {

// Goes on with the checksum of TFRecord files before their mask: begin with ~0, and complement the
// result.
uint32_t AddToCrc32c(uint32_t crc, std::span<const std::byte> bytes);

}  // namespace penstock::ctl
