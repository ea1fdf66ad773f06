// How often the kernel has ended processes for want of memory, as far as that may concern a daemon:
// so that the next one knows what the one before died of.
//
// The kernel counts for each control group (memory.events of v2, memory.oom_control of v1) and for
// the machine. The group's own count decides where the daemon before was in the same group: a
// neighbour's death is none of its. A group that was made anew, as that of a service that starts
// again, has forgotten: then the machine's count decides.
//
// What was counted last lies in the state folder:
//
//   kills   the machine's boot, the group (its folder's inode), the group's count, the machine's,
//           and the number that was returned
//
// Threads:  one, when a daemon starts.
// Cost:     reads four small files and writes one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/service/state/state_folder.h"

namespace penstock {

// A number that is greater than the daemon before got, where one that the kernel has ended since
// may have been that daemon. Absent where the kernel does not say, or nothing can be written down.
// `root` stands in front of /proc and /sys, for tests.
std::optional<uint64_t> CountOutOfMemoryKills(const StateFolder& folder,
                                              const std::string& root = "");

}  // namespace penstock
