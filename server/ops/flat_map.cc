#include "server/engine/order/element_turns.h"
#include "server/engine/order/interleave_op.h"
#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

const OpRegistration<v1::FlatMap> kFlatMap(
    "flat_map", {.nests_elements = true},
    [](const v1::FlatMap& options, PlanBuilder& plan) -> absl::Status {
      return plan.SetNested(
          options.input(),
          [](const OrderNode& nested, uint32_t width) {
            return InterleaveOrder(nested, width, /*cycle_length=*/1, /*block_length=*/1);
          },
          [](const OrderNode& nested, uint32_t width) {
            return ElementTurns(nested, width, /*cycle_length=*/1, /*block_length=*/1);
          });
    });

}  // namespace
}  // namespace penstock
