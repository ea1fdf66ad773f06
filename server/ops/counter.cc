#include "server/engine/order/endless_order.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/read/counter_loader.h"

namespace penstock {
namespace {

// Modulo 2^64, as in two's complement.
struct Numbers {
  uint64_t start;
  uint64_t step;
  uint64_t operator()(uint64_t i) const { return start + i * step; }
  void Restart(uint64_t) {}
};

const OpRegistration<v1::Counter> kCounter(
    "counter", {.place = OpPlace::kSource},
    [](const v1::Counter& options, PlanBuilder& plan) -> absl::Status {
      const Numbers numbers{static_cast<uint64_t>(options.start()),
                            options.has_step() ? static_cast<uint64_t>(options.step()) : 1};
      const FileRange files = plan.AddFiles({FileEntry{}});
      plan.SetSource(std::make_unique<CounterLoader>(), files,
                     [numbers, file = files.first](FrontContext&, OrderInputs) {
                       return std::make_unique<EndlessOrder<Numbers>>(numbers, file);
                     });
      plan.SetEndless(true);
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
