#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/unbatch_rows.h"

namespace penstock {
namespace {

absl::Status PlanUnbatch(const v1::Unbatch&, PlanBuilder& plan) { return AddUnbatch(plan); }

const OpRegistration<v1::Unbatch> kUnbatch("unbatch", {}, PlanUnbatch);

}  // namespace
}  // namespace penstock
