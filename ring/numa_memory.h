// Memory of one NUMA node: asking for it, and looking where it is.
//
// Threads:  any; no state.
// Owns:     nothing.
// Limits:   nodes 0 to kMaxNumaNodes - 1.
#pragma once

#include <cstdint>
#include <optional>

namespace penstock::ring {

// What the kernel's masks of nodes have at the most (CONFIG_NODES_SHIFT of 10).
inline constexpr int kMaxNumaNodes = 1024;

// Pages of [memory, memory + bytes) that are not there yet come from the node as long as it has
// any, then from others (mbind(2), MPOL_PREFERRED). Of a shared file it holds for that part of the
// file, whoever touches it. Returns 0, or the error's number: EINVAL where the node has no memory
// or the process's cpuset leaves it out, EPERM or ENOSYS where the system refuses the call.
// REQUIRES: `memory` is the begin of a page.
int PreferNumaNode(void* memory, uint64_t bytes, int node);

// How many of the bytes lie on the node, by a look at one page in 2 MiB, or at some 500 of more
// than 1 GiB (move_pages(2)); nullopt where the system does not tell. Cost: one system call.
std::optional<uint64_t> BytesOnNumaNode(const void* memory, uint64_t bytes, int node);

}  // namespace penstock::ring
