#include "server/engine/run/worker_placement.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "base/numa_node.h"
#include "base/processors.h"

namespace penstock {
namespace {

constexpr int kWorkersPerProcessor = 4;
constexpr int kWorkersAlways = 16;

// Affinity and cgroup may change while the process runs; so that its pipelines have the same, they
// are looked at once.
int Processors() {
  static const int processors = ThreadsFor(UsableProcessors());
  return processors;
}

}  // namespace

WorkerPlacement::WorkerPlacement(int nice, std::vector<int> processors,
                                 std::function<void(const absl::Status&)> not_bound)
    : nice_(nice), processors_(std::move(processors)), not_bound_(std::move(not_bound)) {}

void WorkerPlacement::Apply() {
  setpriority(PRIO_PROCESS, 0, nice_);  // of this thread alone, on Linux
  if (processors_.empty()) return;
  const absl::Status status = RunOn(processors_);
  if (!status.ok() && !told_not_bound_.exchange(true) && not_bound_ != nullptr) not_bound_(status);
}

int WorkerPlacement::DefaultWorkers() const {
  return processors_.empty() ? Processors()
                             : std::min(Processors(), static_cast<int>(processors_.size()));
}

int WorkerPlacement::MaxWorkers(int workers) {
  return std::max({workers, kWorkersAlways, kWorkersPerProcessor * Processors()});
}

}  // namespace penstock
