// The processors that this process may use.
#pragma once

#include <string>
#include <string_view>

namespace penstock {

// What "max 100000" or "150000 100000" of a cgroup's cpu.max comes to; 0 where it sets no limit, or is
// none.
double ProcessorsOfQuota(std::string_view cpu_max);

// The least of the affinity and of cpu.max of this process's cgroups (v2), from its own up to the root
// below `cgroup_root`.
double UsableProcessors(const std::string& cgroup_root = "/sys/fs/cgroup",
                        const std::string& own_cgroup = "/proc/self/cgroup");

}  // namespace penstock
