// Datasets in one sequence whose elements have their features in another order, or other sizes.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

TEST_CASE("features come in the order of the first input, whatever the op that joins them") {
  const std::string first =
      "range { stop: 3 } | map { out: 'p = value' out: 'q = float32(value) / 2' out: 'r = value + "
      "1' }";
  const std::string second =
      "(| range { start: 10 stop: 14 } | map { out: 'r = value + 1' out: 'p = value' out: 'q = "
      "float32(value) / 2' } |)";
  const std::string joined[] = {
      first + " | concatenate { " + second + " }",
      "range { stop: 2 } | repeat {} | choose_from_datasets { stop_on_empty_dataset: false (| " +
          first + " |) " + second + " }",
      "sample_from_datasets { seed: 3 (| " + first + " |) " + second + " }",
  };
  for (const std::string& stages : joined) {
    for (const char* behind :
         {"", " | shuffle { buffer_size: 5 seed: 1 }", " | filter { predicate: 'p >= 0' }",
          " | map { out: 'p = p' out: 'q = q' out: 'r = r' }"}) {
      // Rows of both inputs in one block, and written into slots.
      for (const char* batch : {"", " | batch { batch_size: 4 }"}) {
        const std::string spec = stages + behind + batch;
        INFO(spec);
        const RunResult result = RunText(Stages(spec));
        CHECK(result.status == absl::OkStatus());
        const std::vector<int64_t> p = Int64s(result);
        REQUIRE(p.size() == 7);
        std::vector<float> q;
        for (const Batch& step : result.batches) {
          const std::vector<float> values = step.As<float>(1);
          q.insert(q.end(), values.begin(), values.end());
        }
        const std::vector<int64_t> r = Int64s(result, 2);
        for (size_t i = 0; i < p.size(); ++i) {
          CHECK(q[i] == static_cast<float>(p[i]) / 2);
          CHECK(r[i] == p[i] + 1);
        }
      }
    }
  }
}

TEST_CASE("sizes that differ between inputs are known of none") {
  const std::string joined =
      "range { stop: 4 } | batch { batch_size: 2 drop_remainder: true } | map { out: 'n = value' "
      "out: 'd = value * 0.5' } | concatenate { (| range { start: 10 stop: 16 } | batch { "
      "batch_size: 3 drop_remainder: true } | map { out: 'd = value * 0.5' out: 'n = value' } |) }";
  const auto plan = PlanText(Stages(joined));
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  CHECK((*plan)->element() == Signature{{"n", {DType::kInt64, {kUnknownSize}}},
                                        {"d", {DType::kFloat64, {kUnknownSize}}}});
  const RunResult result = RunPlan(*plan);
  REQUIRE(result.batches.size() == 4);
  const std::vector<std::vector<int64_t>> expected = {{0, 1}, {2, 3}, {10, 11, 12}, {13, 14, 15}};
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto n = reinterpret_cast<const int64_t*>(result.batches[i].parts[0][0].data());
    CHECK(std::vector<int64_t>(n, n + expected[i].size()) == expected[i]);
    const auto d = reinterpret_cast<const double*>(result.batches[i].parts[1][0].data());
    for (size_t k = 0; k < expected[i].size(); ++k)
      CHECK(d[k] == static_cast<double>(expected[i][k]) / 2);
  }
  // As what follows finds them: their rows, or all of them padded, which stand in one block.
  const RunResult rows = RunText(Stages(joined + " | unbatch {} | batch { batch_size: 10 }"));
  REQUIRE(rows.batches.size() == 1);
  CHECK(Int64s(rows) == std::vector<int64_t>{0, 1, 2, 3, 10, 11, 12, 13, 14, 15});
  const RunResult padded = RunText(
      Stages(joined + " | padded_batch { batch_size: 4 padded_shape { feature: 'n' shape: 4 } }"));
  REQUIRE(padded.batches.size() == 1);
  CHECK(Int64s(padded) ==
        std::vector<int64_t>{0, 1, 0, 0, 2, 3, 0, 0, 10, 11, 12, 0, 13, 14, 15, 0});
}

TEST_CASE("elements that differ otherwise are refused") {
  const char* const others[] = {
      "map { out: 'p = value' }",
      "map { out: 'p = value' out: 'r = value' }",
      "map { out: 'p = value' out: 'q = float64(value)' }",
      "map { out: 'p = value' out: 'q = value * [1, 2]' }",
      "enumerate {}",
  };
  for (const char* other : others) {
    INFO(other);
    const auto plan =
        PlanText(Stages(absl::StrCat("range { stop: 3 } | map { out: 'q = value' out: 'p = value' "
                                     "} | concatenate { (| range { stop: 3 } | ",
                                     other, " |) }")));
    CHECK(plan.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(absl::StrContains(plan.status().message(),
                            "stage concatenate: input 1: expected elements like those of input 0, "
                            "q int64 (), p int64 (), found "));
  }
}

}  // namespace
}  // namespace penstock::test
