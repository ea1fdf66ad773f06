#include <utility>

#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/state_order.h"

namespace penstock {
namespace {

const OpRegistration<v1::Reduce> kReduce(
    "reduce", {.expressions = {v1::Reduce::kLetFieldNumber, v1::Reduce::kStateFieldNumber}},
    [](const v1::Reduce& options, PlanBuilder& plan) -> absl::Status {
      if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
      auto program = StateProgram::Read(options, {}, plan);
      if (!program.ok()) return program.status();
      StateOptions state;
      state.program = *std::move(program);
      state.only_last = true;
      return AddStateOrder(std::move(state), options.structure(), plan);
    });

}  // namespace
}  // namespace penstock
