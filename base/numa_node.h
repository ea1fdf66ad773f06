// The processors of one NUMA node of this machine, and threads that run on nothing else.
//
// Threads:  safe from any thread.
// Limits:   nodes 0 to 1023; processors 0 to 1023 (CPU_SETSIZE), those beyond are not used.
// Cost:     some system calls and reads of small files: for who starts something, not for each
//           step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock {

inline constexpr int kNoNumaNode = -1;
inline constexpr int kMaxNumaNode = 1023;

// -1 (none) or a node's number: else InvalidArgument, which begins with the field's name.
absl::Status CheckNumaNode(absl::string_view field, int node);

// The numbers of "0-3,8,10-11", as the kernel lists processors and nodes
// (Documentation/admin-guide/cputopology.rst), in order; none for an empty line. nullopt for what
// is no such list, or has numbers beyond 1023.
std::optional<std::vector<int>> ParseNumberList(absl::string_view text);

// The processors of the node that this thread may use. NotFound where the machine has no such node,
// with those that it has; FailedPrecondition where it has no processors, or affinity and cpuset
// leave none of them.
absl::StatusOr<std::vector<int>> ProcessorsOfNode(
    int node, const std::string& nodes_folder = "/sys/devices/system/node");

// From now on this thread runs on these only. What the system says when it refuses.
absl::Status RunOn(const std::vector<int>& processors);

}  // namespace penstock
