// How many workers an executor has, on which processors they run, and how far behind a trainer they
// stand there.
//
// Threads:  Apply() by each worker, for itself; everything else from any thread.
// Limits:   a running executor is given four workers for each processor of the process at the most,
//           but 16 at any rate: each needs a place for its statistics.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "absl/status/status.h"

namespace penstock {

class WorkerPlacement {
 public:
  // `nice`, `processors` and `not_bound` as ExecutorOptions has them.
  WorkerPlacement(int nice, std::vector<int> processors,
                  std::function<void(const absl::Status&)> not_bound);

  // Of this thread alone. What it touches first is then near it, too: records, cells, columns.
  void Apply();

  // One for each processor that this process may use, or of `processors`.
  int DefaultWorkers() const;
  // What an executor that begins with so many may be given.
  static int MaxWorkers(int workers);

 private:
  // Constant after construction.
  const int nice_;
  const std::vector<int> processors_;
  const std::function<void(const absl::Status&)> not_bound_;

  std::atomic<bool> told_not_bound_{false};
};

}  // namespace penstock
