// A number of bytes as messages tell it: "12.0 MiB", "512 bytes".
//
// Threads:  functions without state.
#pragma once

#include <cstdint>
#include <string>

namespace penstock {

std::string ReadableBytes(uint64_t bytes);

}  // namespace penstock
