#include "server/engine/order/order_op.h"

#include <algorithm>

#include "server/engine/tasks/errands.h"

namespace penstock {
namespace {

// How often an op could not tell its count yet.
uint64_t NumWaits(const FrontContext& context) {
  const uint64_t others = context.errands == nullptr ? 0 : context.errands->num_count_waits();
  return context.files.num_index_waits() + others;
}

}  // namespace

bool CountNow(OrderOp& op, const FrontContext& context, std::optional<uint64_t>* count) {
  const uint64_t waits = NumWaits(context);
  *count = op.Count();
  return *count || NumWaits(context) == waits;
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
