#include "server/engine/run/function_times.h"

#include <algorithm>

namespace penstock {

void FunctionTimes::Add(absl::Span<const std::string> names, absl::Span<const uint64_t> ticks) {
  const int stage = clock_.current();
  for (size_t i = 0; i < names.size(); ++i) {
    const auto found =
        std::find_if(functions_.begin(), functions_.end(), [&](const Function& function) {
          return function.stage == stage && function.name == &names[i];
        });
    if (found != functions_.end()) {
      found->ticks += ticks[i];
    } else if (functions_.size() < kMost) {
      functions_.push_back({stage, &names[i], ticks[i]});
    }
  }
}

}  // namespace penstock
