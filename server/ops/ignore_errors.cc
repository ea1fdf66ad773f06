#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

// The stages in front know of it (PlanBuilder::ignored()), so that those that count or join
// elements leave out what fails before they do. What can fail behind the last of them is left out
// here.
absl::Status ReadIgnored(const google::protobuf::Message& options, SkipLimits* limits) {
  return ReadSkipLimits(static_cast<const v1::IgnoreErrors&>(options), "", limits);
}

const OpRegistration<v1::IgnoreErrors> kIgnoreErrors(
    "ignore_errors", {.reads_ignored = ReadIgnored},
    [](const v1::IgnoreErrors& options, PlanBuilder& plan) -> absl::Status {
      SkipLimits limits;
      if (absl::Status status = ReadSkipLimits(options, "", &limits); !status.ok()) return status;
      plan.MarkStageAsOrder();
      return plan.LeaveOutFailures();
    });

}  // namespace
}  // namespace penstock
