#include "server/service/tune/depth_tuner.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/service/watch/percent.h"

namespace penstock {
namespace {

// Workers that wait for slots for less than this could not have made more batches ahead.
constexpr double kHadTime = 0.05;
// A wait that has become so much shorter shows that it helped.
constexpr double kHelps = 0.8;

}  // namespace

uint32_t DepthTuner::Look(const v1::PipelineStats& stats, uint32_t slots, uint32_t most) {
  const v1::Analysis& now = stats.analysis();
  if (settling_.Passes()) return slots;
  if (stats.state() != v1::PIPELINE_STATE_RUNNING || now.seconds() <= 0) return slots;
  const double wait = WaitThatCounts(stats);
  if (tried_) {
    tried_ = false;
    if (wait > kMayWait && wait > kHelps * waited_) {
      rest_.Begin();
      reason_ = absl::StrCat("consumers wait ", Percent(wait), " of their time as before: ", slots,
                             " slots are no better than fewer");
    }
  }
  if (rest_.Passes()) return slots;
  if (wait <= kMayWait) {
    reason_ = absl::StrCat("consumers wait ", Percent(wait), " of their time");
    return slots;
  }
  if (now.blocked() < kHadTime) {
    reason_ = absl::StrCat(
        "consumers wait ", Percent(wait),
        " of their time, but the ring is hardly ever full: more slots would stay empty");
    return slots;
  }
  if (slots >= most) {
    reason_ = absl::StrCat("consumers wait ", Percent(wait), " of their time, and ", slots,
                           " slots are as many as there may be");
    return slots;
  }
  const uint32_t wanted = std::min(most, slots + std::max<uint32_t>(1, slots / 2));
  reason_ = absl::StrCat(slots, " to ", wanted, ": consumers waited ", Percent(wait),
                         " of their time, and the ring was full for ", Percent(now.blocked()));
  ++changes_;
  settling_.Begin(kSettlingLooks);
  tried_ = true;
  waited_ = wait;
  return wanted;
}

}  // namespace penstock
