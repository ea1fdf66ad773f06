#include "tests/support/instruction_sets.h"

#include <cstdint>

#include "server/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/support/instruction_sets.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::testing::HWY_NAMESPACE {
namespace {

int64_t ThisTarget() { return HWY_TARGET; }

}  // namespace
}  // namespace penstock::testing::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

HWY_EXPORT(ThisTarget);

}  // namespace

void ForEachInstructionSet(const std::function<void(const char* name)>& test) {
  const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  REQUIRE(!targets.empty());
  for (const int64_t target : targets) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    INFO(hwy::TargetName(target));
    CHECK(HWY_DYNAMIC_DISPATCH(ThisTarget)() == target);
    test(hwy::TargetName(target));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace penstock::testing
#endif  // HWY_ONCE
