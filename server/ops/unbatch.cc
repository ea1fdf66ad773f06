#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/unbatch_rows.h"

namespace penstock {
namespace {

const OpRegistration<v1::Unbatch> kUnbatch("unbatch", [](const v1::Unbatch&, PlanBuilder& plan) {
  return AddUnbatch(plan);
});

}  // namespace
}  // namespace penstock
