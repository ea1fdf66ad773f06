#include "server/engine/op_registry.h"
#include "server/engine/unbatch_rows.h"

namespace penstock {
namespace {

const OpRegistration<v1::Unbatch> kUnbatch("unbatch", [](const v1::Unbatch&, PlanBuilder& plan) {
  return AddUnbatch(plan);
});

}  // namespace
}  // namespace penstock
