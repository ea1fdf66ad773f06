#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/tensor_values.h"

namespace penstock {
namespace {

const OpRegistration<v1::FromTensors> kFromTensors(
    "from_tensors",
    [](const v1::FromTensors& options, PlanBuilder& plan) {
      return PlanTensors(options.tensor(), options.npz(), /*slices=*/false, plan);
    },
    OpPlace::kSource);

}  // namespace
}  // namespace penstock
