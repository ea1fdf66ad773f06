#include "server/service/tune/read_ahead_tuner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/service/watch/percent.h"

namespace penstock {
namespace {

// Of the workers' time: reading that takes less is not what a trainer waits for.
constexpr double kMuch = 0.2;
// Reading that has become so much quicker shows that it helped.
constexpr double kHelps = 1.1;
constexpr size_t kLooksBack = 5;

}  // namespace

int64_t ReadAheadTuner::Look(const v1::PipelineStats& stats, int stage, int64_t bytes,
                             int64_t most) {
  if (bytes > most) return Choose(bytes, most, absl::StrCat("there may be ", most));
  const v1::StageStats& source = stats.stages(stage);
  // The counters begin anew with a stream.
  if (!samples_.empty() && (source.read_bytes() < samples_.back().read_bytes ||
                            stats.running_ns() < samples_.back().running_ns)) {
    samples_.clear();
  }
  samples_.push_back({stats.running_ns(), source.read_bytes(), source.read_ns()});
  if (samples_.size() > kLooksBack + 1) samples_.pop_front();
  if (samples_.size() <= kLooksBack || stats.state() != v1::PIPELINE_STATE_RUNNING) return bytes;
  const Sample& from = samples_.front();
  const Sample& to = samples_.back();
  const auto running = static_cast<double>(to.running_ns - from.running_ns);
  const auto reading = static_cast<double>(to.read_ns - from.read_ns);
  if (running <= 0 || reading <= 0 || stats.workers() == 0) return bytes;
  const double speed = static_cast<double>(to.read_bytes - from.read_bytes) / reading;
  const double share = reading / running / stats.workers();
  if (tried_ && speed < kHelps * speed_) {
    rest_.Begin();
    return Choose(bytes, before_, "reading was no quicker with more");
  }
  tried_ = false;
  if (rest_.Passes()) return bytes;
  const double wait = WaitThatCounts(stats);
  if (wait <= kMayWait || share < kMuch) {
    reason_ = absl::StrCat("consumers wait ", Percent(wait), " of their time, and reading takes ",
                           Percent(share), " of the workers'");
    return bytes;
  }
  if (bytes >= most) {
    reason_ = absl::StrCat("consumers wait ", Percent(wait), " of their time, and ", most,
                           " bytes are as many as there may be");
    return bytes;
  }
  before_ = bytes;
  speed_ = speed;
  const int64_t wanted =
      Choose(bytes, std::min(2 * bytes, most),
             absl::StrCat("consumers waited ", Percent(wait), " of their time, and reading took ",
                          Percent(share), " of the workers'"));
  tried_ = true;
  return wanted;
}

int64_t ReadAheadTuner::Choose(int64_t bytes, int64_t wanted, std::string reason) {
  reason_ = absl::StrCat(bytes, " to ", wanted, ": ", reason);
  ++changes_;
  tried_ = false;
  samples_.clear();
  return wanted;
}

}  // namespace penstock
