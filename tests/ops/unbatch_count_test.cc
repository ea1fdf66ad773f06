// What is known beforehand of rows that become elements: how many there are, and whether batches of
// them are all full.
#include "server/engine/run/step_count.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

TEST_CASE("unbatch and rebatch are counted where every element has as many rows") {
  const std::string numbers = "range { stop: 22 } | ";
  const std::string triples = numbers + "map { out: 'n = value * [1, 2, 3]' } | ";
  const std::string some = triples + "map { out: 'n = compress(n > 20, n)' } | ";
  const struct {
    std::string stages;
    std::optional<uint64_t> steps;
    int64_t first_axis;  // -1: unknown
  } cases[] = {
      {numbers + "batch { batch_size: 5 } | unbatch {} | batch { batch_size: 4 }", 6, -1},
      {numbers +
           "batch { batch_size: 5 drop_remainder: true } | unbatch {} | batch { batch_size: 4 }",
       5, -1},
      {numbers + "batch { batch_size: 5 remainder: WRAP } | unbatch {} | batch { batch_size: 4 }",
       7, -1},
      {numbers + "batch { batch_size: 5 remainder: PAD } | unbatch {} | batch { batch_size: 4 }", 6,
       -1},
      {numbers + "batch { batch_size: 5 drop_remainder: true } | take { count: 3 } | unbatch {} | "
                 "batch { batch_size: 4 }",
       4, -1},
      {numbers + "batch { batch_size: 6 drop_remainder: true } | rebatch { batch_size: 3 }", 6, 3},
      {numbers + "batch { batch_size: 6 drop_remainder: true } | rebatch { batch_size: 4 }", 5, -1},
      {numbers + "batch { batch_size: 6 } | rebatch { batch_size: 3 }", 8, -1},
      {numbers + "batch { batch_size: 6 } | rebatch { batch_size: 3 drop_remainder: true }", 7, 3},
      {numbers + "batch { batch_size: 11 } | rebatch { batch_size: 3 batch_size: 2 }", 9, -1},
      {numbers + "batch { batch_size: 11 } | rebatch { batch_size: 3 batch_size: 2 "
                 "drop_remainder: true }",
       8, -1},
      {numbers + "shard { num_shards: 4 index: 1 } | batch { batch_size: 5 }", 2, -1},
      {numbers + "shard { num_shards: 4 index: 2 } | batch { batch_size: 5 }", 1, -1},
      {triples + "unbatch {} | batch { batch_size: 4 }", 17, -1},
      {triples + "rebatch { batch_size: 3 } | take { count: 5 }", 5, 3},
      {triples + "rebatch { batch_size: 1 }", 66, 1},
      {triples + "repeat { count: 2 } | unbatch {} | batch { batch_size: 10 }", 14, -1},
      {triples + "unbatch {} | ignore_errors {} | batch { batch_size: 4 }", std::nullopt, -1},
      {triples + "rebatch { batch_size: 3 } | ignore_errors {}", std::nullopt, -1},
      {some + "unbatch {} | batch { batch_size: 4 }", std::nullopt, -1},
      {some + "rebatch { batch_size: 1 }", std::nullopt, -1},
  };
  for (const auto& c : cases) {
    INFO(c.stages);
    const auto plan = PlanText(Stages(c.stages));
    INFO(plan.status().ToString());
    REQUIRE(plan.ok());
    CHECK(CountSteps(**plan).steps == c.steps);
    const RunResult result = RunPlan(*plan);
    CHECK(result.status.ok());
    CHECK(result.batches.size() == c.steps.value_or(result.batches.size()));
    CHECK((*plan)->element().front().type.shape.front() == c.first_axis);
  }
}

TEST_CASE("unbatch takes 1 to 64 elements at a time") {
  const auto planned = [](const std::string& options) {
    return PlanText(Stages("range { stop: 4 } | map { out: 'n = value * [1, 2]' } | unbatch { " +
                           options + " } | batch { batch_size: 3 }"))
        .status();
  };
  CHECK(planned("block_size: 1").ok());
  CHECK(planned("block_size: 64").ok());
  for (const char* const wrong : {"block_size: 0", "block_size: 65", "block_size: -1"}) {
    INFO(wrong);
    const absl::Status status = planned(wrong);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(status.message().find("stage unbatch: block_size: expected") != std::string::npos);
  }
}

}  // namespace
}  // namespace penstock::test
