#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/tensor_values.h"

namespace penstock {
namespace {

const OpRegistration<v1::FromTensorSlices> kFromTensorSlices(
    "from_tensor_slices",
    [](const v1::FromTensorSlices& options, PlanBuilder& plan) {
      return PlanTensors(options.tensor(), options.npz(), /*slices=*/true, plan);
    },
    OpPlace::kSource);

}  // namespace
}  // namespace penstock
