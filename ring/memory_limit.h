// How much memory this process may still take: the machine's MemAvailable and the limits of its
// cgroups, v1 and v2.
//
// Threads:  any; no state.
// Limits:   a snapshot: what others take afterwards is not known.
// Cost:     reads a handful of small files.
#pragma once

#include <cstdint>
#include <string>

#include "ring/status.h"

namespace penstock::ring {

struct MemoryAtHand {
  uint64_t bytes = UINT64_MAX;
  std::string source;  // what limits it, with its figures, for a message
};

// What of the page cache counts as free: the part that is not in use, or all of it. The kernel
// takes back the rest too, though at the price of reading it again.
enum class CachedFiles { kInactive, kAll };

// `root` stands in front of /proc and /sys, for tests.
MemoryAtHand ReadMemoryAtHand(const std::string& root = "",
                              CachedFiles cached = CachedFiles::kInactive);

// What this process may use in all, whoever has it now: the smallest limit of its control groups,
// or the machine's memory. `source` says which: "its control group has 2.0 GiB".
MemoryAtHand ReadMemoryInAll(const std::string& root = "");

// The same without what rings of this process were promised and have not taken yet
// (ring/memory_promise.h).
MemoryAtHand ReadUnpromisedMemory();

// kResourceExhausted, with the figures, unless `bytes` fit and some are left over. `what` begins
// the sentence: "a ring of 3 slots of 12.0 MiB".
Status CheckMemory(const std::string& what, uint64_t bytes, const MemoryAtHand& at_hand);

// "12.0 MiB", "512 bytes".
std::string BytesToString(uint64_t bytes);

}  // namespace penstock::ring
