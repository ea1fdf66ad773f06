#include "base/processors.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace penstock {
namespace {

std::string FirstLine(const std::string& path, bool (*wanted)(const std::string& line)) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (wanted(line)) return line;
  }
  return "";
}

}  // namespace

double ProcessorsOfQuota(std::string_view cpu_max) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(absl::StripSuffix(absl::string_view(cpu_max.data(), cpu_max.size()), "\n"),
                     absl::MaxSplits(' ', 1));
  double quota = 0, period = 0;
  if (!absl::SimpleAtod(parts.first, &quota) || !absl::SimpleAtod(parts.second, &period)) return 0;
  return quota > 0 && period > 0 ? quota / period : 0;
}

int ThreadsFor(double processors) { return std::max(1, static_cast<int>(processors + 0.5)); }

double UsableProcessors(const std::string& cgroup_root, const std::string& own_cgroup) {
  cpu_set_t set;
  // Who may not ask for its affinity (a seccomp filter) has what the system tells anybody.
  double processors = sched_getaffinity(0, sizeof(set), &set) == 0
                          ? CPU_COUNT(&set)
                          : std::max(1u, std::thread::hardware_concurrency());
  // Version 2's line is "0::/PATH".
  std::string path =
      FirstLine(own_cgroup, [](const std::string& line) { return line.starts_with("0::/"); });
  if (path.empty()) return processors;
  path = path.substr(3);
  while (true) {
    const std::string quota = FirstLine(cgroup_root + path + "/cpu.max",
                                        [](const std::string& line) { return !line.empty(); });
    if (const double limit = ProcessorsOfQuota(quota); limit > 0)
      processors = std::min(processors, limit);
    if (path.empty() || path == "/") return processors;
    path = path.substr(0, path.rfind('/'));
  }
}

}  // namespace penstock
