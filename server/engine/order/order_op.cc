#include "server/engine/order/order_op.h"

#include <algorithm>

namespace penstock {

bool CountNow(OrderOp& op, const FrontContext& context, std::optional<uint64_t>* count) {
  const uint64_t waits = context.files.num_index_waits();
  *count = op.Count();
  return *count || context.files.num_index_waits() == waits;
}

Pulled SkipByPulling(OrderOp& op, const FrontContext& context, uint64_t count, uint64_t* skipped) {
  constexpr uint64_t kAtOnce = 1024;
  RecordList dropped;
  while (*skipped < count) {
    if (context.interrupted()) return Pulled::kBlocked;
    uint64_t pulled = 0;
    const Pulled result = op.Pull(std::min(kAtOnce, count - *skipped), dropped, &pulled);
    *skipped += pulled;
    context.store.Release(dropped);
    dropped.clear();
    if (result != Pulled::kSome) return result;
  }
  return Pulled::kSome;
}

}  // namespace penstock
