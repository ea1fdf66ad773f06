#include "ring/slot_trial.h"

#include <algorithm>

namespace penstock::ring {
namespace {

// Clearly shorter: the noise of a trial's medians is below that.
constexpr uint64_t kWorthPercent = 97;

uint64_t Median(std::array<uint64_t, SlotTrial::kWindows> times) {
  const auto middle = times.begin() + times.size() / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// Of the windows 0, 1, 2, 3 … of a trial: 0 the chosen number's, 1 the other's. Neither comes first
// more often.
uint32_t SideOf(uint32_t window) { return (window ^ window >> 1) & 1; }

}  // namespace

void SlotTrial::Begin(uint32_t least, uint32_t most) {
  *this = {};
  least_ = std::min(least, most);
  used_ = chosen_ = most_ = most;
}

uint32_t SlotTrial::Other(bool fewer) const {
  return fewer ? std::max(least_, chosen_ * 3 / 4) : std::min(most_, (chosen_ * 4 + 2) / 3);
}

void SlotTrial::Rest(uint64_t until_ns) {
  used_ = chosen_;
  resting_ = true;
  rest_until_ns_ = until_ns;
}

void SlotTrial::StartWindow() {
  used_ = SideOf(window_) == 0 ? chosen_ : other_;
  steps_ = 0;
}

void SlotTrial::Publish(uint64_t now_ns) {
  if (!is_on()) return;
  if (resting_) {
    if (rest_until_ns_ == 0) rest_until_ns_ = now_ns + kStartNs;
    if (now_ns < rest_until_ns_) return;
    if (Other(fewer_) == chosen_) fewer_ = !fewer_;
    other_ = Other(fewer_);
    resting_ = false;
    window_ = 0;
    StartWindow();
    return;
  }
  if (++steps_ == kSettling) begin_ns_ = now_ns;
  if (steps_ < kSteps) return;
  const uint64_t time_ns = now_ns - begin_ns_;
  if (time_ns > (kSteps - kSettling) * kSlowNs) return Rest(now_ns + kRestNs / 10);
  times_ns_[SideOf(window_)][window_ / 2] = time_ns;
  if (++window_ < 2 * kWindows) return StartWindow();
  Decide(now_ns);
}

void SlotTrial::Decide(uint64_t now_ns) {
  if (Median(times_ns_[1]) * 100 < Median(times_ns_[0]) * kWorthPercent) {
    chosen_ = other_;
    if (Other(fewer_) != chosen_) return Rest(now_ns);
  }
  fewer_ = !fewer_;
  Rest(now_ns + kRestNs);
}

}  // namespace penstock::ring
