// The control groups that limit this process's memory, v1 and v2, and the small files in which the
// kernel tells of them.
//
// Threads:  any; no state.
// Cost:     reads /proc/self/cgroup.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::ring {

// Folders: its own group's first, then those around it up to the mount's. In a container the path
// may be the host's, and then only the last of them exists.
struct MemoryGroups {
  std::vector<std::string> v1, v2;
};

// `root` stands in front of /proc and /sys, for tests.
MemoryGroups FindMemoryGroups(const std::string& root = "");

// False where it cannot be read.
bool ReadSmallFile(const std::string& path, std::string* text);

// The number behind `key`, with its space or colon, at the beginning of a line.
std::optional<uint64_t> FieldOf(const std::string& text, std::string_view key);

}  // namespace penstock::ring
