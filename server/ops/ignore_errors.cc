#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

// The stages in front know of it (PlanBuilder::ignored()), so that those that count or join elements leave out what fails before they
// do. What can fail behind the last of them is left out here.
const OpRegistration<v1::IgnoreErrors> kIgnoreErrors(
    "ignore_errors", [](const v1::IgnoreErrors& options, PlanBuilder& plan) -> absl::Status {
      SkipLimits limits;
      if (absl::Status status = ReadSkipLimits(options, "", &limits); !status.ok()) return status;
      plan.MarkStageAsOrder();
      return plan.LeaveOutFailures();
    });

}  // namespace
}  // namespace penstock
