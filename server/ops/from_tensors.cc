#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/tensor_values.h"

namespace penstock {
namespace {

const OpRegistration<v1::FromTensors> kFromTensors(
    "from_tensors", {.place = OpPlace::kSource, .arrays = v1::FromTensors::kNpzFieldNumber},
    [](const v1::FromTensors& options, PlanBuilder& plan) {
      return PlanTensors(options.tensor(), options.npz(), /*slices=*/false, plan);
    });

}  // namespace
}  // namespace penstock
