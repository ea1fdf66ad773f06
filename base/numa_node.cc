#include "base/numa_node.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace penstock {
namespace {

constexpr int kMaxNumber = 1023;

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

absl::Status CheckNumaNode(absl::string_view field, int node) {
  if (node >= kNoNumaNode && node <= kMaxNumaNode) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, " out of range: ", node, " is not -1 (none) or in [0, ", kMaxNumaNode, "]"));
}

std::optional<std::vector<int>> ParseNumberList(absl::string_view text) {
  std::vector<int> numbers;
  text = absl::StripAsciiWhitespace(text);
  if (text.empty()) return numbers;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    int first = 0, last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
        !absl::SimpleAtoi(ends.back(), &last) || first < 0 || first > last || last > kMaxNumber) {
      return std::nullopt;
    }
    for (int number = first; number <= last; ++number) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

absl::StatusOr<std::vector<int>> ProcessorsOfNode(int node, const std::string& nodes_folder) {
  const std::string online = FirstLine(absl::StrCat(nodes_folder, "/online"));
  const std::optional<std::vector<int>> nodes = ParseNumberList(online);
  if (!nodes || nodes->empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no NUMA node ", node, ": ", nodes_folder, " tells of none"));
  }
  if (!std::binary_search(nodes->begin(), nodes->end(), node)) {
    return absl::NotFoundError(
        absl::StrCat("there is no NUMA node ", node, ": this machine has ", online));
  }
  const std::string list = FirstLine(absl::StrCat(nodes_folder, "/node", node, "/cpulist"));
  const std::optional<std::vector<int>> all = ParseNumberList(list);
  if (!all || all->empty()) {
    return absl::FailedPreconditionError(absl::StrCat("NUMA node ", node, " has no processors"));
  }
  cpu_set_t usable;
  // Who may not ask for its affinity learns at RunOn() what it may use.
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0) return *all;
  std::vector<int> processors;
  for (const int processor : *all) {
    if (CPU_ISSET(processor, &usable)) processors.push_back(processor);
  }
  if (processors.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("none of the processors of NUMA node ", node, " (", list,
                     ") may be used: the affinity or the cpuset of penstockd leaves them out"));
  }
  return processors;
}

absl::Status RunOn(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(processor, &set);
  if (sched_setaffinity(0, sizeof(set), &set) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "sched_setaffinity");
}

}  // namespace penstock
