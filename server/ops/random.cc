#include "base/random.h"

#include "server/engine/order/endless_order.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/read/counter_loader.h"
#include "server/engine/spec/drawn_seed.h"

namespace penstock {
namespace {

// Number i is draw number i of the pass.
class Numbers {
 public:
  Numbers(uint64_t key, bool rerandomize) : key_(key), rerandomize_(rerandomize), draws_(key, 0) {}
  uint64_t operator()(uint64_t i) { return draws_.Draw(i); }
  void Restart(uint64_t epoch) { draws_ = DrawSequence(key_, rerandomize_ ? epoch : 0); }

 private:
  uint64_t key_;
  bool rerandomize_;
  DrawSequence draws_;
};

const OpRegistration<v1::Random> kRandom(
    "random", {.place = OpPlace::kSource, .seed = v1::Random::kSeedFieldNumber},
    [](const v1::Random& options, PlanBuilder& plan) -> absl::Status {
      const int64_t seed = options.has_seed() ? options.seed() : DrawSeed();
      plan.stage_spec().mutable_random()->set_seed(seed);
      const Numbers numbers(plan.DrawKey(seed), options.rerandomize_each_iteration());
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
