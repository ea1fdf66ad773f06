// Batches whose rows differ in shape are left out where an ignore_errors stands behind them.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/plan/cursor.h"
#include "tests/ops/contract.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

// Ten rows: of batches of two, the third has rows of different lengths.
const std::string kRows =
    "range { stop: 10 } | map { out: 'n = value' out: 'v = arange((value + 1) // 3)' }";

// The first rows of the batches.
std::vector<int64_t> FirstRows(const RunResult& result) {
  std::vector<int64_t> first;
  for (const Batch& batch : result.batches)
    first.push_back(*reinterpret_cast<const int64_t*>(batch.tensors[0].data()));
  return first;
}

TEST_CASE("a batch whose rows differ in shape is left out, and the others stay batches") {
  const std::string batches = kRows + " | batch { batch_size: 2 }";
  const RunResult plain = RunText(Stages(batches));
  CHECK(absl::StrContains(plain.status.message(), "the rows of a batch have different shapes"));
  // Lengths: 0, 0; 1, 1; 1, 2; 2, 2; 3, 3.
  const RunResult left = RunText(Stages(batches + " | ignore_errors {}"));
  INFO(left.status.ToString());
  CHECK(left.status.ok());
  CHECK(FirstRows(left) == std::vector<int64_t>{0, 2, 6, 8});
  for (const Batch& batch : left.batches) CHECK(batch.info.rows == 2);
  const RunResult limited = RunText(Stages(batches + " | ignore_errors { max_skipped: 0 }"));
  CHECK(FirstRows(limited) == std::vector<int64_t>{0, 2});
  CHECK(absl::StrContains(limited.status.message(), "too many damaged places: 1 > 0"));
  // It counts for what stands behind it only where it is left.
  CHECK(FirstRows(RunText(Stages(batches + " | take { count: 3 } | ignore_errors {}"))) ==
        std::vector<int64_t>{0, 2, 6});
  CHECK(FirstRows(RunText(Stages(batches + " | skip { count: 2 } | ignore_errors {}"))) ==
        std::vector<int64_t>{6, 8});
}

TEST_CASE("a batch whose rows differ in shape gives no elements back") {
  const std::string batches = kRows + " | batch { batch_size: 2 }";
  const auto numbers = [](const RunResult& result) {
    std::vector<int64_t> all;
    for (const Batch& batch : result.batches) {
      for (uint64_t row = 0; row < batch.info.rows; ++row)
        all.push_back(reinterpret_cast<const int64_t*>(batch.tensors[0].data())[row]);
    }
    return all;
  };
  const std::string last = " | map { out: 'n = n' } | batch { batch_size: 1 }";
  for (const char* const apart : {" | unbatch {}", " | rebatch { batch_size: 1 } | unbatch {}"}) {
    INFO(apart);
    const RunResult plain = RunText(Stages(batches + apart + last));
    CHECK(absl::StrContains(plain.status.message(), "the rows of a batch have different shapes"));
    CHECK(numbers(plain) == std::vector<int64_t>{0, 1, 2, 3});
    for (const std::string& text :
         {batches + apart + " | ignore_errors {}", batches + " | ignore_errors {}" + apart}) {
      INFO(text);
      const RunResult left = RunText(Stages(text + last));
      INFO(left.status.ToString());
      CHECK(left.status.ok());
      CHECK(numbers(left) == std::vector<int64_t>{0, 1, 2, 3, 6, 7, 8, 9});
    }
  }
}

TEST_CASE("a cursor of a release that left no batch out is refused where one may be left out") {
  const struct {
    std::string text;
    uint32_t number;
  } cases[] = {
      {kRows + " | batch { batch_size: 2 } | ignore_errors {}", 2},
      {kRows + " | batch { batch_size: 2 } | take { count: 3 } | ignore_errors {}", 2},
      {kRows + " | batch { batch_size: 2 }", 1},
      {kRows + " | padded_batch { batch_size: 2 } | ignore_errors {}", 1},
      {kRows + " | batch { batch_size: 1 } | ignore_errors {}", 1},
      {"range { stop: 10 } | batch { batch_size: 2 } | ignore_errors {}", 1},
      {kRows + " | batch { batch_size: 2 } | unbatch {} | batch { batch_size: 1 }", 2},
      {"range { stop: 10 } | batch { batch_size: 2 } | unbatch {} | batch { batch_size: 3 }", 1},
  };
  for (const auto& c : cases) {
    INFO(c.text);
    const auto plan = PlanText(Stages(c.text));
    INFO(plan.status().ToString());
    REQUIRE(plan.ok());
    const auto fingerprint = FingerprintOf(**plan);
    REQUIRE(fingerprint.ok());
    uint32_t number = 1;
    for (const v1::StageMeaning& stage : fingerprint->meanings().stage())
      number = std::max(number, stage.number());
    CHECK(number == c.number);
  }
}

TEST_CASE("pipelines that leave batches out keep the contract of ops") {
  for (
      const char* const text : {
          "range { stop: 101 } | map { out: 'a = arange(value // 7)' out: 'b = value' } | batch { "
          "batch_size: 4 } | ignore_errors {} | repeat { count: 2 }",
          "range { stop: 101 } | map { out: 'a = arange(value // 9)' out: 'b = "
          "random_uniform([2], seed=1)' } | batch { batch_size: 4 remainder: WRAP } | take { "
          "count: 21 } | repeat { count: 2 } | ignore_errors {}",
          "range { stop: 101 } | map { out: 'a = arange(value // 7)' } | batch { batch_size: 4 } | "
          "take { count: 20 } | ignore_errors {} | map { out: 'b = a * 2' } | shuffle { "
          "buffer_size: 5 seed: 2 } | repeat { count: 2 }",
          "range { stop: 30 } | flat_map { (| map { out: 'a = arange(value) // 2' } | unbatch {} | "
          "map { out: 'b = arange(a)' } | batch { batch_size: 3 } |) } | ignore_errors {} | repeat "
          "{ count: 2 }",
          "range { stop: 101 } | map { out: 'a = arange(value % 5 // 2)' } | "
          "bucket_by_sequence_length { element_length: 'shape(a)[0]' bucket_boundary: 2 "
          "bucket_batch_size: 2 bucket_batch_size: 5 no_padding: true } | ignore_errors {} | "
          "repeat { count: 2 }",
          "range { stop: 101 } | map { out: 'a = arange(value // 7)' } | batch { batch_size: 4 } | "
          "ignore_errors {} | unbatch {} | ragged_batch { batch_size: 3 }",
          "range { stop: 101 } | map { out: 'a = arange(value // 7)' } | batch { batch_size: 4 } | "
          "unbatch {} | ragged_batch { batch_size: 3 } | ignore_errors {} | repeat { count: 2 }",
          "range { stop: 101 } | map { out: 'a = arange(value // 8)' } | batch { batch_size: 4 } | "
          "rebatch { batch_size: 2 } | ignore_errors {} | repeat { count: 2 }",
      }) {
    INFO(text);
    Contract contract(Stages(text));
    CHECK(contract.reference().status == absl::OkStatus());
    CHECK(contract.reference().batches.size() > 4);
    contract.CheckWorkers();
    for (const uint64_t seed : {1, 2}) {
      contract.CheckDelays(seed);
      contract.CheckCursors(seed);
    }
    contract.CheckStop();
  }
}

}  // namespace
}  // namespace penstock::test
