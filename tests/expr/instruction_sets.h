// Runs a test once for each instruction set of this machine, and once for the scalar twin.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Before highway's own headers.
#include "server/kernels/targets.h"

#include "hwy/targets.h"
#include "server/expr/region.h"

namespace penstock::expr {

struct InstructionSet {
  std::string name;
  int64_t target = 0;
  Lanes lanes = Lanes::kVector;
};

inline std::vector<InstructionSet> InstructionSets() {
  hwy::SetSupportedTargetsForTest(0);
  const int64_t supported = hwy::SupportedTargets() & HWY_TARGETS;
  std::vector<InstructionSet> sets = {{"scalar", HWY_SSE4, Lanes::kScalar}};
  for (const int64_t target : {HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (supported & target) sets.push_back({hwy::TargetName(target), target, Lanes::kVector});
  }
  return sets;
}

// Makes kernels choose one instruction set until it is destroyed. Programs keep the set that they
// were compiled for.
class ScopedInstructionSet {
 public:
  explicit ScopedInstructionSet(const InstructionSet& set) {
    hwy::SetSupportedTargetsForTest(set.target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  ~ScopedInstructionSet() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

}  // namespace penstock::expr
