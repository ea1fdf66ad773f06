// The steps of a helper's stream: in the order of the questions, within what it may take.
#include "server/helpers/step_sink.h"

#include <memory>
#include <optional>

#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

std::shared_ptr<const Plan> SmallPlan() {
  auto plan = PlanText(Stages("range { stop: 1000 } | batch { batch_size: 10 }"));
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  return *plan;
}

// Claims the next step and publishes it; whether it was wanted.
bool Pass(StepSink& sink, uint64_t step) {
  ClaimedSlot slot;
  REQUIRE(sink.TryClaim(&slot));
  StepInfo info;
  info.step = step;
  sink.Publish(slot, info);
  return !IsUnwanted(slot);
}

TEST_CASE("a helper answers in the order of the questions, whatever it can make") {
  const auto plan = SmallPlan();
  StepSink sink(*plan, 0, 3, nullptr, [] {});
  sink.Passed(2);
  CHECK(!Pass(sink, 0));
  CHECK(!Pass(sink, 1));
  ClaimedSlot none;
  CHECK(!sink.TryClaim(&none));
  // The second question comes late: the order has not gone past it yet. The third one's step is
  // gone.
  CHECK(sink.Want(3));
  CHECK(sink.Want(2));
  CHECK(sink.Want(1));
  CHECK(!sink.Want(4));
  CHECK(!sink.TakeMade());
  CHECK(Pass(sink, 2));
  CHECK(!sink.TakeMade());
  CHECK(Pass(sink, 3));
  for (const uint64_t step : {uint64_t{3}, uint64_t{2}}) {
    const auto made = sink.TakeMade();
    REQUIRE(made);
    CHECK(made->step == step);
    CHECK(made->is_made);
    sink.GiveBack(*made);
  }
  const auto unmade = sink.TakeMade();
  REQUIRE(unmade);
  CHECK(unmade->step == 1);
  CHECK(!unmade->is_made);
  // Behind the end there is none, and the reason is known.
  CHECK(sink.Want(4));
  sink.Finish(absl::DataLossError("so it is"));
  REQUIRE(sink.TakeMade());
  REQUIRE(sink.Failure());
  CHECK(sink.Failure()->message() == "so it is");
}

TEST_CASE("what a helper's steps take is charged, and given back") {
  const auto plan = SmallPlan();
  MemoryAccount::Options options;
  options.name = "a stream";
  options.bytes_max = 300;
  options.limit = "the test's";
  const auto account = MemoryAccount::Create(std::move(options));
  {
    StepSink sink(*plan, 0, 3, account, [] {});
    CHECK(sink.Want(0));
    CHECK(Pass(sink, 0));
    CHECK(account->taken() >= 80);
    CHECK(sink.Want(1));
    ClaimedSlot slot;
    CHECK_THROWS_AS(sink.TryClaim(&slot), MemoryLimitError);
    // The memory of a step that has gone its way is there again.
    sink.GiveBack(*sink.TakeMade());
    CHECK(Pass(sink, 1));
  }
  CHECK(account->taken() == 0);
}

}  // namespace
}  // namespace penstock::test
