// How long consumers have waited lately, look by look: the lane of a trainer in `penstock top`.
//
// Threads:  one.
// Limits:   the last kLooks looks of each consumer that is there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "penstock/v1/control.pb.h"

namespace penstock::ctl {

class TopLanes {
 public:
  static constexpr size_t kLooks = 60;

  // Begins a look at everything: whoever is not seen in it is forgotten at the next one.
  void BeginLook();
  // The lanes of a pipeline's consumers, in their order, this look included: "      waits ▁▁▁▃█▁ now 4 %, at most 81 %".
  std::vector<std::string> Look(const std::string& daemon, const v1::PipelineStats& stats);

 private:
  struct Lane {
    std::deque<double>
        shares;  // of each look, the latest last: of its time that the consumer found nothing ready
    uint64_t seen_in = 0;
  };
  using Key = std::tuple<std::string, std::string, uint32_t, int32_t>;

  std::map<Key, Lane> lanes_;  // by daemon, pipeline, consumer and process
  uint64_t look_ = 0;
};

}  // namespace penstock::ctl
