// What the functions inside of a worker's stages take of a block, while a profile is made.
//
// Threads:  of one worker.
// Limits:   kMost functions of one block; what is beyond is left out.
// Cost:     a search among those that the block has called, for each step of each run of a program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/step_times.h"
#include "server/engine/compute/stage_clock.h"

namespace penstock {

class FunctionTimes final : public StepTimes {
 public:
  static constexpr size_t kMost = 256;

  struct Function {
    int stage = 0;
    const std::string* name = nullptr;  // the program's, which lives as long as the plan
    uint64_t ticks = 0;
  };

  explicit FunctionTimes(const StageClock& clock) : clock_(clock) {}

  void Add(absl::Span<const std::string> names, absl::Span<const uint64_t> ticks) override;

  // Since Clear(), in the order in which they were called first.
  const std::vector<Function>& functions() const { return functions_; }
  void Clear() { functions_.clear(); }

 private:
  const StageClock& clock_;
  std::vector<Function> functions_;
};

}  // namespace penstock
