#include "server/service/tune/depth_tuner.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// A trainer that waits for less than this has what it wants.
constexpr double kMayWait = 0.02;
// Workers that wait for slots for less than this could not have made more batches ahead.
constexpr double kHadTime = 0.05;
// A wait that has become so much shorter shows that it helped.
constexpr double kHelps = 0.8;
// An analysis looks back on as many seconds.
constexpr int kSettlingLooks = 5;
constexpr int kMostPatience = 1920;

std::string Percent(double share) { return absl::StrCat(std::lround(100 * share), " %"); }

}  // namespace

uint32_t DepthTuner::Look(const v1::PipelineStats& stats, uint32_t slots, uint32_t most) {
  const v1::Analysis& now = stats.analysis();
  if (settling_ > 0) {
    --settling_;
    return slots;
  }
  if (stats.state() != v1::PIPELINE_STATE_RUNNING || now.seconds() <= 0) return slots;
  const double wait = stats.consumers().empty() ? 0 : now.trainer_wait();
  if (tried_) {
    tried_ = false;
    if (wait > kMayWait && wait > kHelps * waited_) {
      resting_ = patience_;
      patience_ = std::min(2 * patience_, kMostPatience);
      reason_ = absl::StrCat("consumers wait ", Percent(wait), " of their time as before: ", slots,
                             " slots are no better than fewer");
    }
  }
  if (resting_ > 0) {
    --resting_;
    return slots;
  }
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
  settling_ = kSettlingLooks;
  tried_ = true;
  waited_ = wait;
  return wanted;
}

}  // namespace penstock
