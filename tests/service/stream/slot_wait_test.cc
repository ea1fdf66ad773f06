// Workers that wait for a slot are woken by the ring, not by the time that they wait at most.

#include <atomic>
#include <cstdint>
#include <thread>

#include "server/engine/run/executor.h"
#include "server/service/stream/ring_sink.h"
#include "tests/ring/test_ring.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"

namespace penstock {
namespace {

constexpr uint64_t kSteps = 20'000;
constexpr uint64_t kHangs = 60'000'000'000;

// A ring whose waiting for a slot has no end but what wakes it.
class PatientSink : public BatchSink {
 public:
  explicit PatientSink(RingSink& ring) : ring_(ring) {}

  bool TryClaim(ClaimedSlot* slot) override { return ring_.TryClaim(slot); }
  void Publish(const ClaimedSlot& slot, const StepInfo& info) override {
    ring_.Publish(slot, info);
  }
  void Finish(const absl::Status& status) override { ring_.Finish(status); }
  void WaitForSlot(absl::Duration) override { ring_.WaitForSlot(absl::Hours(1)); }
  void Interrupt() override { ring_.Interrupt(); }

 private:
  RingSink& ring_;
};

TEST_CASE("workers and a consumer that wait for each other need no clock to go on") {
  const auto plan =
      test::PlanText("stage { range { stop: 320000 } } stage { batch { batch_size: 16 } }");
  REQUIRE(plan.ok());
  for (const int workers : {1, 2, 3}) {
    for (const uint32_t slots : {2u, 3u}) {
      auto ring = RingSink::Create("p", (*plan)->tensors(), slots);
      REQUIRE(ring.ok());
      PatientSink sink(**ring);
      ring::TestConsumer consumer(&(*ring)->writer());
      ExecutorOptions options;
      options.workers = workers;
      options.worker_nice = 0;
      const auto executor = Executor::Create(*plan, sink, options);
      REQUIRE(executor.ok());
      REQUIRE((*executor)->Start().ok());
      uint64_t steps = 0;
      ring::Lease lease;
      while (consumer.reader().Next(kHangs, &lease) == ring::Reader::Result::kBatch) {
        ++steps;
        consumer.reader().Release(lease);
      }
      INFO(workers << " workers, " << slots << " slots");
      CHECK(steps == kSteps);
      (*executor)->Stop();
    }
  }
}

}  // namespace
}  // namespace penstock
