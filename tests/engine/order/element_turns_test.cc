// Datasets of elements' values in turns: what their random ops draw by, and cursors in the middle
// of uneven ones. TensorFlow's own orders are compared by tests/client/python_dataset_test.py.
#include "server/engine/order/element_turns.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "server/engine/plan/plan_impl.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

std::vector<int64_t> ValuesOf(const std::vector<Batch>& batches) {
  std::vector<int64_t> values;
  for (const Batch& batch : batches) {
    const std::vector<int64_t> more = batch.As<int64_t>(0);
    values.insert(values.end(), more.begin(), more.end());
  }
  return values;
}

TEST_CASE("turns: a shuffle inside has another order for each element and in each pass") {
  const RunResult run = RunText(
      Stages("range { stop: 4 } | flat_map { (| map { out: 'v = value * 100 + [0, 1, 2, 3, 4, 5, "
             "6, 7, 8, 9]' } | unbatch {} | shuffle { buffer_size: 10 seed: 3 } |) } | repeat { "
             "count: 2 } | batch { batch_size: 10 }"));
  REQUIRE(run.status.ok());
  std::set<std::vector<int64_t>> orders;
  for (const Batch& batch : run.batches) {
    std::vector<int64_t> order = batch.As<int64_t>(0);
    REQUIRE(order.size() == 10);
    for (int64_t& value : order) value %= 100;
    orders.insert(order);
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < 10; ++i) CHECK(order[i] == i);
  }
  // Four elements in two passes.
  CHECK(orders.size() == 8);
}

TEST_CASE("turns: a cursor goes on anywhere in datasets of uneven lengths") {
  // Element e has e * 7 % 10 elements: 0, 7, 4, 1, 8, 5, 2, 9, 6, 3 and so on.
  for (const char* const turns :
       {"cycle_length: 2", "cycle_length: 3 block_length: 4", "cycle_length: 5 block_length: 2"}) {
    INFO(turns);
    const std::string spec = Stages(
        std::string("range { stop: 25 } | interleave { (| map { out: 'v = value * 100 + [0, 1, 2, "
                    "3, 4, 5, 6, 7, 8]' } | unbatch {} | filter { predicate: 'v % 100 < (v // 100 "
                    "* 7) % 10' } |) ") +
        turns + " } | repeat { count: 2 } | batch { batch_size: 1 }");
    const RunResult all = RunText(spec);
    const std::vector<int64_t> values = ValuesOf(all.batches);
    REQUIRE(values.size() == 2 * 110);
    const auto plan = PlanText(spec);
    REQUIRE(plan.ok());
    for (size_t step = 0; step < all.batches.size(); step += 3) {
      INFO("behind step " << step);
      const RunResult tail = RunPlan(*plan, {.cursor = all.batches[step].info.cursor});
      CHECK(ValuesOf(tail.batches) ==
            std::vector<int64_t>(values.begin() + static_cast<int64_t>(step) + 1, values.end()));
    }
  }
}

TEST_CASE("turns: an element that fails is none, though its dataset needs nothing of it") {
  // Those of 1 and 3 fail.
  const std::string front =
      "range { stop: 4 } | map { out: 'b = (value + [0, 1])[where(value % 2 == 1, 5, 1)]' } | ";
  struct Case {
    std::string turns;
    size_t rows;  // in front of the first that fails
  };
  const std::vector<Case> cases = {
      {"flat_map { (| range { stop: 2 } |) }", 2},
      {"interleave { (| range { stop: 2 } |) cycle_length: 2 }", 1},
      {"batch { batch_size: 1 } | flat_map { (| range { stop: 2 } |) }", 2},
  };
  for (const auto& [turns, rows] : cases) {
    INFO(turns);
    const RunResult ignored =
        RunText(Stages(front + turns + " | ignore_errors {} | batch { batch_size: 1 }"));
    CHECK(ignored.status.ok());
    CHECK(ignored.batches.size() == 4);
    CHECK(ignored.skipped.size() == 2);
    const RunResult failing = RunText(Stages(front + turns + " | batch { batch_size: 1 }"));
    CHECK(failing.status.code() == absl::StatusCode::kDataLoss);
    CHECK_THAT(std::string(failing.status.message()), Catch::Contains("stage map: index 5"));
    CHECK(failing.batches.size() == rows);
    const auto plan =
        PlanText(Stages(front + turns + " | ignore_errors {} | batch { batch_size: 1 }"));
    REQUIRE(plan.ok());
    for (size_t step = 0; step < ignored.batches.size(); ++step) {
      const RunResult tail = RunPlan(*plan, {.cursor = ignored.batches[step].info.cursor});
      CHECK(tail.batches ==
            std::vector<Batch>(ignored.batches.begin() + step + 1, ignored.batches.end()));
    }
  }
}

TEST_CASE("turns: where nothing in front can fail, no element is computed ahead") {
  const auto is_in_cells = [](const std::string& front) {
    INFO(front);
    const auto plan = PlanText(
        Stages(front + " | flat_map { (| range { stop: 2 } |) } | batch { batch_size: 3 }"));
    REQUIRE(plan.ok());
    // In front of `batch`.
    const OrderNode& turns = *static_cast<const PlanImpl&>(**plan).order().inputs[0];
    REQUIRE(turns.nested != nullptr);
    // The work of a section stands in front of its cells.
    return turns.values->kind == WorkNode::Kind::kLoad && !turns.values->inputs.empty();
  };
  CHECK_FALSE(is_in_cells("range { stop: 4 }"));
  CHECK_FALSE(is_in_cells("range { stop: 4 } | shuffle { buffer_size: 2 seed: 1 } | repeat {}"));
  CHECK_FALSE(is_in_cells("range { stop: 4 } | enumerate {}"));
  CHECK_FALSE(is_in_cells("range { stop: 4 } | concatenate { (| range { stop: 3 } |) }"));
  CHECK(is_in_cells("range { stop: 4 } | map { out: 'n = value' } | enumerate {}"));
}

}  // namespace
}  // namespace penstock::test
