#include <cstdint>
#include <optional>

#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/declared_outputs.h"
#include "server/engine/stage/unbatch_rows.h"

namespace penstock {
namespace {

// As many as a task takes at most.
constexpr int64_t kMaxBlockSize = 64;

absl::Status PlanUnbatch(const v1::Unbatch& options, PlanBuilder& plan) {
  std::optional<uint32_t> block_rows;
  if (options.has_block_size()) {
    if (absl::Status status = CheckFromOne("block_size", options.block_size(), kMaxBlockSize);
        !status.ok())
      return status;
    block_rows = static_cast<uint32_t>(options.block_size());
  }
  return AddUnbatch(plan, block_rows);
}

const OpRegistration<v1::Unbatch> kUnbatch("unbatch", {}, PlanUnbatch);

}  // namespace
}  // namespace penstock
