#include "ring/memory_limit.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ring/descriptor.h"
#include "ring/memory_promise.h"

namespace penstock::ring {
namespace {

// Left free on top of a ring, so that the first page fault after it does not wake the OOM killer.
constexpr uint64_t kReserveBytes = uint64_t{32} << 20;
// A cgroup without a limit shows a number near 2^63 (v1) or "max" (v2).
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

bool ReadFile(const std::string& path, std::string* text) {
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

bool ReadNumber(const std::string& path, uint64_t* number) {
  std::string text;
  if (!ReadFile(path, &text) || text.empty() || text[0] < '0' || text[0] > '9') return false;
  *number = std::strtoull(text.c_str(), nullptr, 10);
  return true;
}

// The number behind `key` at the beginning of a line; 0 where there is none.
uint64_t FieldOf(const std::string& text, std::string_view key) {
  for (size_t line = 0; line < text.size();) {
    size_t end = std::min(text.find('\n', line), text.size());
    if (text.compare(line, key.size(), key) == 0) {
      return std::strtoull(text.c_str() + line + key.size(), nullptr, 10);
    }
    line = end + 1;
  }
  return 0;
}

void Lower(uint64_t bytes, const std::string& source, MemoryAtHand* at_hand) {
  if (bytes < at_hand->bytes) *at_hand = {bytes, source};
}

// One directory of a cgroup hierarchy. Page cache can be taken back, so it does not count as used.
void LookAtCgroup(const std::string& folder, const char* limit_file, const char* usage_file,
                  const std::string& prefix, CachedFiles cached, MemoryAtHand* at_hand) {
  uint64_t limit = 0, usage = 0;
  if (!ReadNumber(folder + limit_file, &limit) || limit >= kNoLimit) return;
  if (!ReadNumber(folder + usage_file, &usage)) return;
  std::string stat;
  uint64_t cache = 0;
  if (ReadFile(folder + "/memory.stat", &stat)) {
    cache = FieldOf(stat, prefix + "inactive_file ");
    if (cached == CachedFiles::kAll) cache += FieldOf(stat, prefix + "active_file ");
  }
  uint64_t used = usage - std::min(usage, cache);
  Lower(limit - std::min(limit, used),
        "cgroup limit " + BytesToString(limit) + ", " + BytesToString(used) + " in use", at_hand);
}

// The limit of one directory.
void LookAtLimit(const std::string& folder, const char* limit_file, MemoryAtHand* in_all) {
  uint64_t limit = 0;
  if (!ReadNumber(folder + limit_file, &limit) || limit >= kNoLimit) return;
  Lower(limit, "its control group has " + BytesToString(limit), in_all);
}

// Whether ":a,b,c:" names the controller.
bool HasController(const std::string& list, const std::string& name) {
  const size_t at = list.find(name);
  return at != std::string::npos && list.find_first_of(",:", at - 1) == at - 1 &&
         list.find_first_of(",:", at) == at + name.size();
}

// The cgroup's own directory and its ancestors: the smallest of their limits holds. In a container
// the path may be the host's, and then only the mount's root exists.
template <typename Look>
void WalkUp(std::string path, Look look) {
  while (!path.empty() && path != "/") {
    look(path);
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  look("");
}

// Calls `v1` or `v2` with each directory that limits this process.
template <typename LookV1, typename LookV2>
void VisitCgroups(const std::string& root, LookV1 v1, LookV2 v2) {
  std::string text;
  if (!ReadFile(root + "/proc/self/cgroup", &text)) return;
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
      WalkUp(path, [&](const std::string& folder) { v2(root + "/sys/fs/cgroup" + folder); });
    } else if (HasController(controllers, "memory")) {
      WalkUp(path, [&](const std::string& folder) { v1(root + "/sys/fs/cgroup/memory" + folder); });
    }
  }
}

}  // namespace

std::string BytesToString(uint64_t bytes) {
  char text[32];
  if (bytes >= uint64_t{1} << 30) {
    std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  } else if (bytes >= uint64_t{1} << 20) {
    std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  } else if (bytes >= uint64_t{1} << 10) {
    std::snprintf(text, sizeof text, "%.1f KiB", static_cast<double>(bytes) / (1 << 10));
  } else {
    std::snprintf(text, sizeof text, "%u bytes", static_cast<unsigned>(bytes));
  }
  return text;
}

MemoryAtHand ReadMemoryAtHand(const std::string& root, CachedFiles cached) {
  MemoryAtHand at_hand;
  std::string text;
  if (ReadFile(root + "/proc/meminfo", &text)) {
    uint64_t available = FieldOf(text, "MemAvailable:") * 1024;
    if (available > 0) {
      Lower(available,
            "the machine has " + BytesToString(FieldOf(text, "MemTotal:") * 1024) + " in all",
            &at_hand);
    }
  }
  VisitCgroups(
      root,
      [&](const std::string& folder) {
        LookAtCgroup(folder, "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_", cached,
                     &at_hand);
      },
      [&](const std::string& folder) {
        LookAtCgroup(folder, "/memory.max", "/memory.current", "", cached, &at_hand);
      });
  return at_hand;
}

MemoryAtHand ReadMemoryInAll(const std::string& root) {
  MemoryAtHand in_all;
  std::string text;
  if (ReadFile(root + "/proc/meminfo", &text)) {
    const uint64_t total = FieldOf(text, "MemTotal:") * 1024;
    if (total > 0) Lower(total, "the machine has " + BytesToString(total), &in_all);
  }
  VisitCgroups(
      root,
      [&](const std::string& folder) { LookAtLimit(folder, "/memory.limit_in_bytes", &in_all); },
      [&](const std::string& folder) { LookAtLimit(folder, "/memory.max", &in_all); });
  return in_all;
}

MemoryAtHand ReadUnpromisedMemory() {
  MemoryAtHand at_hand = ReadMemoryAtHand();
  const uint64_t promised = std::min(MemoryPromise::Total(), at_hand.bytes);
  if (promised == 0) return at_hand;
  at_hand.bytes -= promised;
  at_hand.source += ", " + BytesToString(promised) + " promised to other rings";
  return at_hand;
}

Status CheckMemory(const std::string& what, uint64_t bytes, const MemoryAtHand& at_hand) {
  uint64_t needed = bytes > UINT64_MAX - kReserveBytes ? UINT64_MAX : bytes + kReserveBytes;
  if (needed <= at_hand.bytes) return {};
  return {Code::kResourceExhausted,
          what + " does not fit in memory: it needs " + BytesToString(bytes) + " and " +
              BytesToString(kReserveBytes) + " to spare, " + BytesToString(at_hand.bytes) +
              " are available (" + at_hand.source + ")"};
}

}  // namespace penstock::ring
