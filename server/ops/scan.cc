#include <utility>

#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/state_order.h"

namespace penstock {
namespace {

const OpRegistration<v1::Scan> kScan(
    "scan",
    {.gives = Given::kOneEach,
     .expressions = {v1::Scan::kLetFieldNumber, v1::Scan::kStateFieldNumber,
                     v1::Scan::kOutFieldNumber}},
    [](const v1::Scan& options, PlanBuilder& plan) -> absl::Status {
      if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
      if (options.out().empty())
        return absl::InvalidArgumentError("expected at least one out, found none");
      auto program = StateProgram::Read(options, options.out(), plan);
      if (!program.ok()) return program.status();
      StateOptions state;
      state.program = *std::move(program);
      return AddStateOrder(std::move(state), options.structure(), plan);
    });

}  // namespace
}  // namespace penstock
