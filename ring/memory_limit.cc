#include "ring/memory_limit.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "ring/control_groups.h"
#include "ring/memory_promise.h"

namespace penstock::ring {
namespace {

// Left free on top of a ring, so that the first page fault after it does not wake the OOM killer.
constexpr uint64_t kReserveBytes = uint64_t{32} << 20;
// A cgroup without a limit shows a number near 2^63 (v1) or "max" (v2).
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

bool ReadNumber(const std::string& path, uint64_t* number) {
  std::string text;
  if (!ReadSmallFile(path, &text) || text.empty() || text[0] < '0' || text[0] > '9') return false;
  *number = std::strtoull(text.c_str(), nullptr, 10);
  return true;
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
  if (ReadSmallFile(folder + "/memory.stat", &stat)) {
    cache = FieldOf(stat, prefix + "inactive_file ").value_or(0);
    if (cached == CachedFiles::kAll) cache += FieldOf(stat, prefix + "active_file ").value_or(0);
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
  if (ReadSmallFile(root + "/proc/meminfo", &text)) {
    uint64_t available = FieldOf(text, "MemAvailable:").value_or(0) * 1024;
    if (available > 0) {
      Lower(available,
            "the machine has " + BytesToString(FieldOf(text, "MemTotal:").value_or(0) * 1024) +
                " in all",
            &at_hand);
    }
  }
  const MemoryGroups groups = FindMemoryGroups(root);
  for (const std::string& folder : groups.v1) {
    LookAtCgroup(folder, "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_", cached,
                 &at_hand);
  }
  for (const std::string& folder : groups.v2)
    LookAtCgroup(folder, "/memory.max", "/memory.current", "", cached, &at_hand);
  return at_hand;
}

MemoryAtHand ReadMemoryInAll(const std::string& root) {
  MemoryAtHand in_all;
  std::string text;
  if (ReadSmallFile(root + "/proc/meminfo", &text)) {
    const uint64_t total = FieldOf(text, "MemTotal:").value_or(0) * 1024;
    if (total > 0) Lower(total, "the machine has " + BytesToString(total), &in_all);
  }
  const MemoryGroups groups = FindMemoryGroups(root);
  for (const std::string& folder : groups.v1)
    LookAtLimit(folder, "/memory.limit_in_bytes", &in_all);
  for (const std::string& folder : groups.v2) LookAtLimit(folder, "/memory.max", &in_all);
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
