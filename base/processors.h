// The processors that this process may use: the one place that counts them.
//
// Threads:  safe from any thread.
// Cost:     some system calls and reads of small files: for who starts something, not for each
//           step.
#pragma once

#include <string>
#include <string_view>

namespace penstock {

// What "max 100000" or "150000 100000" of a cgroup's cpu.max comes to; 0 where it sets no limit, or
// is none.
double ProcessorsOfQuota(std::string_view cpu_max);

// The least of the affinity and of cpu.max of this process's cgroups (v2), from its own up to the
// root below `cgroup_root`.
double UsableProcessors(const std::string& cgroup_root = "/sys/fs/cgroup",
                        const std::string& own_cgroup = "/proc/self/cgroup");

// Threads that keep so many processors busy: as many, rounded, and at least one.
int ThreadsFor(double processors);

}  // namespace penstock
