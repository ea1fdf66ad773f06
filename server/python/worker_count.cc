#include "server/python/worker_count.h"

#include <algorithm>
#include <cmath>

#include "base/worker_margin.h"

namespace penstock::python {
namespace {

// Workers that are busy for so much of their time are what rows wait for.
constexpr double kBusy = 0.85;
constexpr int kMostPatience = 320;

}  // namespace

double WorkerCount::Work(const Mark& from, uint64_t now_ns, uint64_t busy_ns) {
  if (now_ns <= from.at_ns || busy_ns <= from.busy_ns) return 0;
  return static_cast<double>(busy_ns - from.busy_ns) / static_cast<double>(now_ns - from.at_ns);
}

int WorkerCount::Look(uint64_t now_ns, uint64_t busy_ns, int workers, bool rows_wait) {
  if (workers == 0) return 1;
  if (workers != workers_) {
    // What was seen before says nothing of so many.
    workers_ = workers;
    up_ = down_ = {now_ns, busy_ns};
    quiet_ = 0;
    return workers;
  }
  if (now_ns - up_.at_ns >= kUpNs) {
    const double work = Work(up_, now_ns, busy_ns);
    up_ = {now_ns, busy_ns};
    if (rows_wait && workers < most_ && work >= kBusy * workers) {
      if (stepped_down_) patience_ = std::min(2 * patience_, kMostPatience);
      stepped_down_ = false;
      return std::min(2 * workers, most_);
    }
  }
  if (now_ns - down_.at_ns < kDownNs) return workers;
  const double work = Work(down_, now_ns, busy_ns);
  down_ = {now_ns, busy_ns};
  const int enough = std::max(1, static_cast<int>(std::ceil(work * kWorkerMargin)));
  quiet_ = enough < workers ? quiet_ + 1 : 0;
  if (quiet_ < patience_) return workers;
  stepped_down_ = true;
  return workers - 1;
}

}  // namespace penstock::python
