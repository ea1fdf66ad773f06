#include "server/service/daemon/watchdog.h"

#include <sys/syscall.h>

#include <fstream>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace {

std::string ReadTaskFile(int32_t thread, const char* name) {
  std::ifstream file(absl::StrCat("/proc/self/task/", thread, "/", name));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

std::vector<int32_t> Watchdog::Look(const std::vector<WorkerPulse>& pulses, int64_t now_ns) {
  std::vector<int32_t> hanging;
  for (auto& [thread, seen] : seen_) seen.current = false;
  for (const WorkerPulse& pulse : pulses) {
    if (pulse.thread == 0) continue;
    Seen& seen = seen_[pulse.thread];
    seen.current = true;
    if (pulse.idle || pulse.beats != seen.beats || seen.since_ns == 0) {
      seen.beats = pulse.beats;
      seen.since_ns = now_ns;
    } else if (waits_for_machine_(pulse.thread)) {
      seen.since_ns = now_ns;
    } else if (now_ns - seen.since_ns > limit_ns_) {
      hanging.push_back(pulse.thread);
    }
  }
  std::erase_if(seen_, [](const auto& entry) { return !entry.second.current; });
  return hanging;
}

bool WaitsForMachine(int32_t thread) {
  // "TID (NAME) STATE …", where the name may hold anything.
  const std::string stat = ReadTaskFile(thread, "stat");
  const size_t name_end = stat.rfind(") ");
  if (name_end == stat.npos || name_end + 2 >= stat.size()) return true;
  if (stat[name_end + 2] == 'D') return true;
  // "running", or the number of the system call and its arguments.
  const std::string call = ReadTaskFile(thread, "syscall");
  int64_t number = -1;
  if (!absl::SimpleAtoi(absl::string_view(call).substr(0, call.find(' ')), &number) || number < 0)
    return false;
  return number != SYS_futex && number != SYS_sched_yield;
}

}  // namespace penstock
