// How many steps a plan's stream has, where that is known before it runs.
//
// Threads:  one thread, before the plan has an executor.
// Cost:     loading the files' indices, which are not built for it; no record is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/engine/plan/plan.h"

namespace penstock {

struct StepCount {
  std::optional<uint64_t> steps;  // from step 0 on to the end
  std::string why_not;            // a sentence, where they are not known
  // Which of them are full, where they are known: all but the last of every `pass_steps` (at least
  // 1), which has `pass_last_rows` elements. 0: that is not known.
  uint64_t pass_steps = 0;
  uint32_t pass_last_rows = 0;
};

StepCount CountSteps(const Plan& plan);

}  // namespace penstock
