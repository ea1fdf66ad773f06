#include "server/engine/order/counted_order.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/read/counter_loader.h"

namespace penstock {
namespace {

// How many numbers there are from `start` to before `stop`.
uint64_t RangeSize(int64_t start, int64_t stop, int64_t step) {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  const uint64_t distance = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                     : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t stride =
      step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  return (distance - 1) / stride + 1;
}

const OpRegistration<v1::Range> kRange(
    "range", {.place = OpPlace::kSource},
    [](const v1::Range& options, PlanBuilder& plan) -> absl::Status {
      const int64_t step = options.has_step() ? options.step() : 1;
      if (step == 0) return absl::InvalidArgumentError("step: expected any number but 0, found 0");
      const FileRange files = plan.AddFiles({FileEntry{}});
      CountedElements numbers;
      numbers.count = RangeSize(options.start(), options.stop(), step);
      numbers.start = static_cast<uint64_t>(options.start());
      numbers.step = static_cast<uint64_t>(step);
      numbers.first_file = files.first;
      plan.SetSource(std::make_unique<CounterLoader>(), files, CountedOrder(numbers));
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
