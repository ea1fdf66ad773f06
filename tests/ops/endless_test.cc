// Sources without end: what comes out although not everything has come, and whether the whole has
// an end.
#include "server/engine/run/step_count.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

std::shared_ptr<const Plan> MustPlan(const std::string& stages) {
  auto plan = PlanText(Stages(stages));
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  return *plan;
}

// Each is asked for all elements that will ever come, none of which may wait for one more.
TEST_CASE("an element that is there is handed over, though no other may ever come") {
  const struct {
    const char* stages;
    std::vector<int64_t> expected;
  } cases[] = {
      {"counter {} | filter { predicate: 'value < 3' }", {0, 1, 2}},
      {"counter {} | filter { predicate: 'value < 3' } | filter { predicate: 'value != 1' }",
       {0, 2}},
      // Of one block: some now, one in its middle, one at its end.
      {"counter {} | filter { predicate: '(value < 3)|(value == 50000)|(value == 90000)' } | "
       "take_while { predicate: 'value < 90000' }",
       {0, 1, 2, 50000}},
      {"counter {} | filter { predicate: '(value < 5)|(value % 5000 == 7) & (value < 320000)' } "
       "| "
       "filter { predicate: 'value > 300000' }",
       {300007, 305007, 310007, 315007}},
      {"zip { (| counter {} | filter { predicate: 'value < 5' } |) (| counter { start: 7 } |) } | "
       "filter { predicate: 'feature(\"0\") > 1' }",
       {2, 3, 4}},
      {"counter { start: 7 } | zip { (| counter {} | filter { predicate: 'value < 5' } |) } | "
       "filter { predicate: 'feature(\"1\") > 1' }",
       {9, 10, 11}},
      {"counter {} | filter { predicate: 'value < 3' } | map { out: 'n = value + 1' } | cache {}",
       {1, 2, 3}},
      {"counter {} | filter { predicate: 'value < 4' } | map { out: 'n = value + 1' } | "
       "group_by_window { key: 'n % 2' window_size: 2 (| batch { batch_size: 1 } |) }",
       {1, 3, 2, 4}},
      {"counter {} | filter { predicate: 'value < 3' } | map { out: 'n = value + 1' } | window { "
       "size: 2 drop_remainder: true shift: 1 (| batch { batch_size: 2 } |) }",
       {1, 2, 2, 3}},
  };
  for (const auto& c : cases) {
    INFO(c.stages);
    const auto plan = MustPlan(c.stages);
    const size_t rows = std::max(1u, plan->batch_rows());
    for (const int workers : {1, 2, 8}) {
      const RunOptions options{.workers = workers, .max_steps = c.expected.size() / rows};
      const RunResult result = RunPlan(plan, options);
      INFO(result.status.ToString());
      CHECK(Int64s(result) == c.expected);
      for (size_t step = 0; step + 1 < result.batches.size(); ++step) {
        const RunResult rest = RunPlan(plan, {.workers = workers,
                                              .max_steps = options.max_steps - step - 1,
                                              .cursor = result.batches[step].info.cursor});
        REQUIRE(rest.batches.size() == options.max_steps - step - 1);
        CHECK(rest.batches.back() == result.batches.back());
        CHECK(rest.batches.back().info.cursor == result.batches.back().info.cursor);
      }
    }
  }
}

TEST_CASE("skip leaves out all of an endless dataset, without asking it") {
  for (const char* endless :
       {"counter {}", "range { stop: 5 } | repeat {}", "random { seed: 1 }",
        "range { stop: 5 } | filter { predicate: 'value > 2' } | repeat {}"}) {
    INFO(endless);
    const auto plan =
        MustPlan(std::string(endless) + " | skip { count: -1 } | batch { batch_size: 2 }");
    const RunResult result = RunPlan(plan, {.max_steps = 3});
    CHECK(result.batches.empty());
    CHECK(result.finished);
    CHECK(result.status.ok());
    CHECK_FALSE(plan->endless());
    CHECK(CountSteps(*plan).steps == 0);
  }
}

TEST_CASE("what says that a stream has no end") {
  const std::string numbers = "range { stop: 2 } | repeat {} | ";
  const std::string choose = "choose_from_datasets { (| counter {} |) ";
  const std::string sample = "sample_from_datasets { seed: 1 (| counter {} |) ";
  const struct {
    std::string stages;
    bool endless;
  } cases[] = {
      {"counter {} | filter { predicate: 'value > 2' }", true},
      {"counter {} | take_while { predicate: 'value < 3' }", false},
      {"counter {} | repeat { count: 2 }", true},
      {"counter {} | repeat { count: 0 }", false},
      {numbers + choose + "(| counter {} |) }", true},
      {numbers + choose + "(| range { stop: 3 } |) }", false},
      {numbers + choose + "(| range { stop: 3 } |) stop_on_empty_dataset: false }", true},
      {"range { stop: 2 } | " + choose + "(| counter {} |) }", false},
      {sample + "(| range { stop: 3 } |) }", true},
      {sample + "(| range { stop: 3 } |) stop_on_empty_dataset: true }", false},
      {sample + "(| range { stop: 3 } |) weight: 0 weight: 1 }", false},
      {sample + "(| range { stop: 3 } |) weight: 1 weight: 0 stop_on_empty_dataset: true }", true},
      {"range { stop: 3 } | map { out: 'n = value' } | flat_map { (| counter {} | zip { (| "
       "window_part {} | repeat {} |) } | take_while { predicate: 'feature(\"0\") < "
       "feature(\"1/n\")' } |) }",
       false},
  };
  for (const auto& c : cases) {
    INFO(c.stages);
    const auto plan = MustPlan(c.stages);
    CHECK(plan->endless() == c.endless);
    CHECK((CountSteps(*plan).why_not.find("no end") != std::string::npos) == c.endless);
  }
  // Nothing is repeated of it.
  CHECK(CountSteps(*MustPlan("range { stop: 0 } | repeat {}")).steps == 0);
}

}  // namespace
}  // namespace penstock::test
