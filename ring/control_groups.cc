#include "ring/control_groups.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "ring/descriptor.h"

namespace penstock::ring {
namespace {

// Whether ":a,b,c:" names the controller.
bool HasController(const std::string& list, const std::string& name) {
  const size_t at = list.find(name);
  return at != std::string::npos && list.find_first_of(",:", at - 1) == at - 1 &&
         list.find_first_of(",:", at) == at + name.size();
}

std::vector<std::string> WalkUp(const std::string& mount, std::string path) {
  std::vector<std::string> folders;
  while (!path.empty() && path != "/") {
    folders.push_back(mount + path);
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  folders.push_back(mount);
  return folders;
}

}  // namespace

bool ReadSmallFile(const std::string& path, std::string* text) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return false;
  text->clear();
  char buffer[4096];
  ssize_t count;
  while ((count = read(file.get(), buffer, sizeof buffer)) > 0) {
    text->append(buffer, static_cast<size_t>(count));
  }
  return count == 0;
}

std::optional<uint64_t> FieldOf(const std::string& text, std::string_view key) {
  for (size_t line = 0; line < text.size();) {
    size_t end = std::min(text.find('\n', line), text.size());
    if (text.compare(line, key.size(), key) == 0) {
      return std::strtoull(text.c_str() + line + key.size(), nullptr, 10);
    }
    line = end + 1;
  }
  return std::nullopt;
}

MemoryGroups FindMemoryGroups(const std::string& root) {
  MemoryGroups groups;
  std::string text;
  if (!ReadSmallFile(root + "/proc/self/cgroup", &text)) return groups;
  // Lines are "0::/path" (v2) and "4:memory:/path" (v1).
  for (size_t line = 0; line < text.size();) {
    size_t end = std::min(text.find('\n', line), text.size());
    std::string entry = text.substr(line, end - line);
    line = end + 1;
    size_t first = entry.find(':'), second = entry.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers = entry.substr(first, second - first + 1);
    std::string path = entry.substr(second + 1);
    if (controllers == "::") {
      groups.v2 = WalkUp(root + "/sys/fs/cgroup", path);
    } else if (HasController(controllers, "memory")) {
      groups.v1 = WalkUp(root + "/sys/fs/cgroup/memory", path);
    }
  }
  return groups;
}

}  // namespace penstock::ring
