#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/tensor_values.h"

namespace penstock {
namespace {

const OpRegistration<v1::FromTensorSlices> kFromTensorSlices(
    "from_tensor_slices",
    {.place = OpPlace::kSource, .arrays = v1::FromTensorSlices::kNpzFieldNumber},
    [](const v1::FromTensorSlices& options, PlanBuilder& plan) {
      return PlanTensors(options.tensor(), options.npz(), /*slices=*/true, plan);
    });

}  // namespace
}  // namespace penstock
