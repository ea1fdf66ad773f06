#include "server/engine/interleave_op.h"

#include "server/engine/file_records.h"
#include "server/engine/op_registry.h"

namespace penstock {
namespace {

const OpRegistration<v1::Interleave> kInterleave(
    "interleave", [](const v1::Interleave& options, PlanBuilder& plan) -> absl::Status {
      FileRecordsOptions turns;
      absl::Status status = ReadCycle(options.has_cycle_length(), options.cycle_length(),
                                      options.has_block_length(), options.block_length(), &turns);
      if (!status.ok()) return status;
      return plan.SetNested(options.input(), [&](const OrderNode& nested, uint32_t width) {
        return InterleaveOrder(nested, width, turns.cycle_length, turns.block_length);
      });
    });

}  // namespace
}  // namespace penstock
