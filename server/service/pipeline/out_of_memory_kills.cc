#include "server/service/pipeline/out_of_memory_kills.h"

#include <sys/stat.h>

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ring/control_groups.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr char kName[] = "kills";
constexpr char kNoBoot[] = "-";

struct Counts {
  std::string boot = kNoBoot;
  uint64_t group = 0;  // 0: none that counts
  uint64_t of_group = 0;
  uint64_t of_machine = 0;
  uint64_t number = 0;  // that was returned
};

// Those of this process's own group: of `folders`, the first, or in a container the last.
void ReadGroup(const std::vector<std::string>& folders, const char* file, Counts* counts) {
  if (folders.empty() || counts->group != 0) return;
  for (const std::string& folder : {folders.front(), folders.back()}) {
    std::string text;
    if (!ring::ReadSmallFile(absl::StrCat(folder, file), &text)) continue;
    const std::optional<uint64_t> kills = ring::FieldOf(text, "oom_kill ");
    struct stat status;
    if (!kills || stat(folder.c_str(), &status) != 0) continue;
    counts->group = status.st_ino;
    counts->of_group = *kills;
    return;
  }
}

std::optional<Counts> ReadCounts(const std::string& root) {
  Counts counts;
  std::string text;
  if (ring::ReadSmallFile(absl::StrCat(root, "/proc/sys/kernel/random/boot_id"), &text)) {
    counts.boot = std::string(absl::StripAsciiWhitespace(text));
    if (counts.boot.empty()) counts.boot = kNoBoot;
  }
  const ring::MemoryGroups groups = ring::FindMemoryGroups(root);
  ReadGroup(groups.v1, "/memory.oom_control", &counts);
  // Those of groups in it are others'.
  ReadGroup(groups.v2, "/memory.events.local", &counts);
  ReadGroup(groups.v2, "/memory.events", &counts);
  std::optional<uint64_t> of_machine;
  if (ring::ReadSmallFile(absl::StrCat(root, "/proc/vmstat"), &text))
    of_machine = ring::FieldOf(text, "oom_kill ");
  if (!of_machine && counts.group == 0) return std::nullopt;
  counts.of_machine = of_machine.value_or(0);
  return counts;
}

std::optional<Counts> ReadLast(const StateFolder& folder) {
  const absl::StatusOr<std::string> text = folder.Read(kName);
  if (!text.ok()) return std::nullopt;
  const std::vector<std::string> words =
      absl::StrSplit(absl::StripAsciiWhitespace(*text), ' ', absl::SkipEmpty());
  Counts last;
  if (words.size() != 5 || !absl::SimpleAtoi(words[1], &last.group) ||
      !absl::SimpleAtoi(words[2], &last.of_group) ||
      !absl::SimpleAtoi(words[3], &last.of_machine) || !absl::SimpleAtoi(words[4], &last.number)) {
    return std::nullopt;
  }
  last.boot = words[0];
  return last;
}

}  // namespace

std::optional<uint64_t> CountOutOfMemoryKills(const StateFolder& folder, const std::string& root) {
  std::optional<Counts> now = ReadCounts(root);
  if (!now) return std::nullopt;
  // What ended with the machine was not ended by it.
  if (const std::optional<Counts> last = ReadLast(folder); last && last->boot == now->boot) {
    const bool is_same_group = now->group != 0 && now->group == last->group;
    const bool has_killed =
        is_same_group ? now->of_group > last->of_group : now->of_machine > last->of_machine;
    now->number = last->number + (has_killed ? 1 : 0);
  } else if (last) {
    now->number = last->number;
  }
  const absl::Status status =
      folder.Write(kName,
                   absl::StrCat(now->boot, " ", now->group, " ", now->of_group, " ",
                                now->of_machine, " ", now->number, "\n"),
                   StateFolder::Durability::kCrash);
  if (!status.ok()) {
    spdlog::warn("a death for want of memory will be nobody's: {}", status.ToString());
    return std::nullopt;
  }
  return now->number;
}

}  // namespace penstock
