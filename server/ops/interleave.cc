#include "server/engine/order/interleave_op.h"

#include "absl/strings/str_cat.h"
#include "server/engine/order/element_turns.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/file_records.h"

namespace penstock {
namespace {

const OpRegistration<v1::Interleave> kInterleave(
    "interleave", {.nests_elements = true},
    [](const v1::Interleave& options, PlanBuilder& plan) -> absl::Status {
      FileRecordsOptions turns;
      absl::Status status = ReadCycle(options.has_cycle_length(), options.cycle_length(),
                                      options.has_block_length(), options.block_length(), &turns);
      if (!status.ok()) return status;
      bool is_too_long = false;
      status = plan.SetNested(
          options.input(),
          [&](const OrderNode& nested, uint32_t width) {
            return InterleaveOrder(nested, width, turns.cycle_length, turns.block_length);
          },
          [&](const OrderNode& nested, uint32_t width) {
            is_too_long = turns.cycle_length > kMaxElementCycleLength;
            return ElementTurns(nested, width, turns.cycle_length, turns.block_length);
          });
      if (!status.ok() || !is_too_long) return status;
      return absl::InvalidArgumentError(
          absl::StrCat("cycle_length: expected 1 to ", kMaxElementCycleLength,
                       " for datasets of an element's values, found ", turns.cycle_length));
    });

}  // namespace
}  // namespace penstock
