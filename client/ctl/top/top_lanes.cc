#include "client/ctl/top/top_lanes.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_format.h"

namespace penstock::ctl {
namespace {

constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

const char* BarOf(double share) {
  const auto level = static_cast<int>(share * static_cast<double>(std::size(kBars)));
  return kBars[std::clamp(level, 0, static_cast<int>(std::size(kBars)) - 1)];
}

}  // namespace

void TopLanes::BeginLook() {
  std::erase_if(lanes_, [this](const auto& entry) { return entry.second.seen_in != look_; });
  ++look_;
}

std::vector<std::string> TopLanes::Look(const std::string& daemon, const v1::PipelineStats& stats) {
  std::vector<std::string> lanes;
  for (const v1::ConsumerStats& consumer : stats.consumers()) {
    Lane& lane = lanes_[{daemon, stats.name(), consumer.id(), consumer.pid()}];
    lane.seen_in = look_;
    lane.shares.push_back(consumer.empty());
    if (lane.shares.size() > kLooks) lane.shares.pop_front();
    std::string bars;
    double most = 0;
    for (const double share : lane.shares) {
      bars += BarOf(share);
      most = std::max(most, share);
    }
    lanes.push_back(absl::StrFormat("      waits %s now %.0f %%, at most %.0f %%", bars,
                                    100 * consumer.empty(), 100 * most));
  }
  return lanes;
}

}  // namespace penstock::ctl
