// How the rate of bytes and what is left of them are shown.
//
// Threads:  any; no state.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::ctl {

// "1.2 GiB of 10.0 GiB, 310.2 MiB/s, 0:29 left". The rate is that of the `moved` bytes in `seconds`; what is left is guessed by the rate at which
// `done` grew. Without seconds, or before anything is done, only the bytes.
std::string ShownRate(uint64_t done, uint64_t moved, uint64_t total, double seconds);

}  // namespace penstock::ctl
