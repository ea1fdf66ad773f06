#include "server/service/tune/autotune.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/worker_margin.h"
#include "server/service/watch/analysis.h"
#include "server/service/watch/helper_gain.h"
#include "server/service/watch/percent.h"

namespace penstock {
int Autotuner::Look(const v1::PipelineStats& stats, int workers) {
  const v1::Analysis& now = stats.analysis();
  if (settling_.Passes()) return workers;
  if (stats.state() != v1::PIPELINE_STATE_RUNNING || now.seconds() <= 0) return workers;
  if (workers > most_) return Choose(workers, most_, absl::StrCat("there may be ", most_));
  const double wait = WaitThatCounts(stats);
  // What the workers do in a second, in workers, and what they would if nobody had to wait.
  const double work = now.busy() * workers;
  if (wait > kMayWait) {
    quiet_ = 0;
    if (now.busy() < kBusyWorkers || workers == most_) {
      reason_ =
          now.busy() < kBusyWorkers
              ? absl::StrCat("consumers wait ", Percent(wait), " of their time, but workers ",
                             "are busy for ", Percent(now.busy()), " only: more would not help")
              : absl::StrCat("consumers wait ", Percent(wait), " of their time, and ", most_,
                             " workers are as many as there may be");
      // What more workers here would not bring, those of other hosts may.
      if (const std::string gain = HelperGainIn(now.sentence()); !gain.empty())
        absl::StrAppend(&reason_, "; ", gain);
      return workers;
    }
    if (stepped_down_) patience_.Double();
    const double needed = work * kWorkerMargin / std::max(0.05, 1 - wait);
    const int wanted = std::clamp(static_cast<int>(std::ceil(needed)), workers + 1,
                                  std::max(workers + 1, 2 * workers));
    stepped_down_ = false;
    return Choose(workers, std::min(wanted, most_),
                  absl::StrCat("consumers waited ", Percent(wait), " of their time"));
  }
  const int enough = std::max(1, static_cast<int>(std::ceil(work * kWorkerMargin)));
  if (enough >= workers) {
    quiet_ = 0;
    reason_ = absl::StrCat("consumers wait ", Percent(wait), " of their time, and ", workers,
                           " workers are busy for ", Percent(now.busy()));
    return workers;
  }
  if (++quiet_ < patience_.looks()) return workers;
  stepped_down_ = true;
  return Choose(workers, workers - 1,
                absl::StrCat("consumers wait ", Percent(wait), " of their time, and ", workers,
                             " workers were busy for ", Percent(now.busy()), " only"));
}

int Autotuner::Choose(int workers, int wanted, std::string reason) {
  if (wanted == workers) return workers;
  ++changes_;
  quiet_ = 0;
  settling_.Begin(kSettlingLooks);
  reason_ = absl::StrCat(workers, " to ", wanted, ": ", reason);
  return wanted;
}

}  // namespace penstock
