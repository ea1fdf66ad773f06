#include "absl/strings/str_cat.h"
#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

constexpr int64_t kAutotune = -1;
constexpr int64_t kMaxReady = 63;

const OpRegistration<v1::Prefetch> kPrefetch(
    "prefetch", {.gives = Given::kOneEach, .keeps_elements = false},
    [](const v1::Prefetch& options, PlanBuilder& plan) -> absl::Status {
      const int64_t ready = options.buffer_size();
      if (ready < kAutotune || ready > kMaxReady) {
        return absl::InvalidArgumentError(
            absl::StrCat("buffer_size: expected -1 (automatic) to ", kMaxReady, ", found ", ready));
      }
      if (!plan.is_last_stage()) {
        plan.AddNotice(
            "has no effect here: the engine reads and works ahead by itself; at the end of a spec "
            "it sets the slots of the ring");
        return absl::OkStatus();
      }
      v1::RingOptions& ring = *plan.spec().mutable_ring();
      if (ring.slots() == 0 && ready > 0) ring.set_slots(ready + 1);
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
