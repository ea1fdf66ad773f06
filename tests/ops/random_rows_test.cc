// What a random function draws for an element of a pipeline: the same wherever the order puts it,
// another number in each epoch and for each element. (That workers, delays and cursors change
// nothing is among the pipelines of contract_test.cc.)
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/ops/contract_files.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"

namespace penstock::test {
namespace {

const char kDraw[] =
    " | map { out: 'n = n' out: 'r = random_uniform(dtype=\"int64\", maxval=1000000000000, "
    "seed=5)' }";

// Which number each `n` drew, in each epoch.
// REQUIRES: batches do not reach from one epoch into the next.
using Drawn = std::map<std::pair<int64_t, uint64_t>, int64_t>;

Drawn DrawnBy(const ContractFiles& files, const std::string& text, int workers = 2) {
  const RunResult result = RunText(files.Spec(text), {.workers = workers});
  INFO(text << ": " << result.status.ToString());
  REQUIRE(result.status.ok());
  Drawn drawn;
  for (const Batch& batch : result.batches) {
    const std::vector<int64_t> n = batch.As<int64_t>(0), r = batch.As<int64_t>(1);
    for (size_t row = 0; row < n.size(); ++row) {
      CHECK(drawn.emplace(std::pair(n[row], batch.info.epoch), r[row]).second);
    }
  }
  return drawn;
}

size_t Different(const Drawn& drawn) {
  std::set<int64_t> values;
  for (const auto& [who, value] : drawn) values.insert(value);
  return values.size();
}

TEST_CASE("A record draws the same numbers, wherever the order puts it") {
  const ContractFiles files;
  const std::string parse = " | $PARSE";
  const Drawn plain =
      DrawnBy(files, absl::StrCat("$BIG", parse, kDraw, " | batch { batch_size: 100 }"));
  REQUIRE(plain.size() == 3000);
  CHECK(Different(plain) == 3000);
  for (const std::string& text : {
           absl::StrCat("$BIG", parse, kDraw, " | batch { batch_size: 7 }"),
           absl::StrCat("$BIG", parse, kDraw,
                        " | shuffle { buffer_size: 500 seed: 3 } | batch { batch_size: 64 }"),
           absl::StrCat("$BIG | shuffle { buffer_size: 500 seed: 3 }", parse, kDraw,
                        " | batch { batch_size: 64 }"),
           absl::StrCat("$BIG | shuffle { global: true seed: 3 }", parse, kDraw,
                        " | batch { batch_size: 50 }"),
           absl::StrCat("$BIG", parse, " | batch { batch_size: 64 }", kDraw),
           absl::StrCat("$BIG", parse, kDraw,
                        " | filter { predicate: 'n >= 0' } | batch { batch_size: 64 }"),
       }) {
    CAPTURE(text);
    CHECK(DrawnBy(files, text, 1) == plain);
    CHECK(DrawnBy(files, text, 3) == plain);
  }
}

TEST_CASE("An element draws anew in each epoch, and not by its place in it") {
  const ContractFiles files;
  const Drawn plain = DrawnBy(
      files,
      absl::StrCat("$BIG | $PARSE", kDraw, " | repeat { count: 3 } | batch { batch_size: 100 }"));
  REQUIRE(plain.size() == 9000);
  CHECK(Different(plain) == 9000);
  CHECK(DrawnBy(files, absl::StrCat("$BIG | shuffle { global: true seed: 3 } | $PARSE", kDraw,
                                    " | repeat { count: 3 } | batch { batch_size: 100 }")) ==
        plain);
  CHECK(DrawnBy(files,
                absl::StrCat(
                    "$BIG | shuffle { buffer_size: 100 seed: 3 } | repeat { count: 3 } | $PARSE",
                    kDraw, " | batch { batch_size: 100 }")) == plain);
}

TEST_CASE("Elements behind a section draw each for itself, once in each epoch") {
  const ContractFiles files;
  for (const std::string& text : {
           // Three elements of each, and of some none.
           absl::StrCat("$RANGE | map { out: 'n = value * 3 + [0, 1, 2]' } | unbatch {}", kDraw,
                        " | repeat { count: 2 } | batch { batch_size: 3 }"),
           absl::StrCat("$RANGE | map { out: 'n = value * 3 + [0, 1, 2]' } | unbatch {} | shuffle "
                        "{ buffer_size: 9 seed: 1 }",
                        kDraw, " | repeat { count: 2 } | batch { batch_size: 101 }"),
           absl::StrCat("$RANGE | map { out: 'n = value * 3 + [0, 1, 2]' } | unbatch {} | repeat { "
                        "count: 2 }",
                        kDraw, " | batch { batch_size: 303 }"),
       }) {
    CAPTURE(text);
    const Drawn drawn = DrawnBy(files, text);
    CHECK(drawn.size() == 606);
    CHECK(Different(drawn) == 606);
    CHECK(DrawnBy(files,
                  absl::StrCat("$RANGE | map { out: 'n = value * 3 + [0, 1, 2]' } | unbatch {}",
                               kDraw, " | repeat { count: 2 } | batch { batch_size: 101 }")) ==
          drawn);
  }
}

TEST_CASE("A tuple draws by all of its members, a branch by its own") {
  const ContractFiles files;
  // Each number of the longer input meets one of 7 of the shorter.
  const Drawn pairs =
      DrawnBy(files, absl::StrCat("zip { (| range { stop: 7 } | repeat {} |) (| $RANGE |) } | map "
                                  "{ out: 'n = feature(\"1\")' out: 'm = feature(\"0\")' } | map { "
                                  "out: 'n = n' out: 'r = random_uniform(dtype=\"int64\", "
                                  "maxval=1000000000000, seed=5)' } | batch { batch_size: 7 }"));
  CHECK(pairs.size() == 101);
  CHECK(Different(pairs) == 101);
  const Drawn branches = DrawnBy(
      files, absl::StrCat("concatenate { (| range { stop: 50 } | map { out: 'n = value' } |) (| "
                          "range { start: 50 stop: 90 } | map { out: 'n = value' } |) }",
                          kDraw, " | batch { batch_size: 7 }"));
  CHECK(branches.size() == 90);
  CHECK(Different(branches) == 90);
}

TEST_CASE("Whole batches as elements draw too") {
  const ContractFiles files;
  const Drawn drawn = DrawnBy(
      files,
      absl::StrCat(
          "$RANGE | batch { batch_size: 4 drop_remainder: true } | map { out: 'n = value[0]' }",
          kDraw, " | repeat { count: 2 } | batch { batch_size: 5 }"));
  CHECK(drawn.size() == 50);
  CHECK(Different(drawn) == 50);
}

TEST_CASE("A filter may draw, anew in each epoch") {
  const ContractFiles files;
  const std::string text =
      "range { stop: 2000 } | filter { predicate: 'random_uniform(seed=1) < 0.25' } | repeat { "
      "count: 2 } | batch { batch_size: 50 }";
  const RunResult result = RunText(files.Spec(text), {.workers = 3});
  std::map<uint64_t, std::set<int64_t>> kept;
  for (const Batch& batch : result.batches) {
    for (const int64_t value : batch.As<int64_t>(0)) kept[batch.info.epoch].insert(value);
  }
  REQUIRE(kept.size() == 2);
  for (const uint64_t epoch : {0, 1}) {
    // 500 are expected, with a deviation of 19.
    CHECK(kept[epoch].size() > 405);
    CHECK(kept[epoch].size() < 595);
  }
  // 125 of both are expected, with a deviation of 11.
  std::vector<int64_t> both;
  std::set_intersection(kept[0].begin(), kept[0].end(), kept[1].begin(), kept[1].end(),
                        std::back_inserter(both));
  CHECK(both.size() < 200);
}

// Whatever stands between what draws and the repeat, and on which side the repeat is.
TEST_CASE("Each pass draws anew and tells its number, with a section in it or a nested dataset") {
  const ContractFiles files;
  const std::string draw =
      "map { out: 'r = random_uniform(maxval=1000000000, dtype=\"int64\", seed=1)' }";
  const std::string numbers = absl::StrCat("range { stop: 4 } | ", draw);
  for (const std::string& text : {
           absl::StrCat(numbers, " | filter { predicate: 'r >= 0' } | repeat { count: 3 }"),
           absl::StrCat("range { stop: 4 } | repeat { count: 3 } | ", draw,
                        " | filter { predicate: 'r >= 0' }"),
           absl::StrCat("range { stop: 4 } | filter { predicate: 'value >= 0' } | ", draw,
                        " | filter { predicate: 'r >= 0' } | repeat { count: 3 }"),
           absl::StrCat(numbers,
                        " | batch { batch_size: 2 } | shuffle { buffer_size: 2 seed: 1 } | "
                        "repeat { count: 3 } | unbatch {}"),
           absl::StrCat(numbers,
                        " | repeat { count: 3 } | enumerate {} | map { out: 'r = "
                        "feature(\"1/r\")' }"),
           absl::StrCat("range { stop: 2 } | repeat { count: 3 } | flat_map { (| map { out: 'v = "
                        "value * [1, 2]' } | unbatch {} |) } | ",
                        draw),
           absl::StrCat("range { stop: 2 } | flat_map { (| map { out: 'v = value * [1, 2]' } | "
                        "unbatch {} | ",
                        draw, " | filter { predicate: 'r >= 0' } |) } | repeat { count: 3 }"),
           absl::StrCat("range { stop: 4 } | repeat { count: 3 } | window { size: 2 shift: 2 (| ",
                        draw, " | filter { predicate: 'r >= 0' } |) }"),
       }) {
    INFO(text);
    const RunResult result =
        RunText(files.Spec(absl::StrCat(text, " | batch { batch_size: 4 }")), {.workers = 2});
    INFO(result.status.ToString());
    REQUIRE(result.status.ok());
    REQUIRE(result.batches.size() == 3);
    std::set<int64_t> drawn;
    for (size_t step = 0; step < 3; ++step) {
      CHECK(result.batches[step].info.epoch == step);
      for (const int64_t value : result.batches[step].As<int64_t>(0)) drawn.insert(value);
    }
    CHECK(drawn.size() == 12);
  }
}

TEST_CASE("Shuffles have another order in each pass, however deep they stand") {
  const ContractFiles files;
  for (const char* const text :
       {"range { stop: 2 } | flat_map { (| range { stop: 8 } | window { size: 8 (| shuffle { "
        "buffer_size: 8 seed: 3 } |) } |) } | repeat { count: 3 } | batch { batch_size: 8 }",
        "range { stop: 8 } | shuffle { buffer_size: 8 seed: 3 } | repeat {} | take { count: 16 } | "
        "repeat { count: 3 } | batch { batch_size: 8 }",
        "range { stop: 2 } | flat_map { (| $BIG | shuffle { global: true seed: 3 } | $PARSE | take "
        "{ "
        "count: 8 } |) } | repeat { count: 3 } | batch { batch_size: 8 }"}) {
    INFO(text);
    const RunResult result = RunText(files.Spec(text), {.workers = 2});
    INFO(result.status.ToString());
    REQUIRE(result.batches.size() == 6);
    std::set<std::vector<int64_t>> orders;
    for (const Batch& batch : result.batches) orders.insert(batch.As<int64_t>(0));
    CHECK(orders.size() == 6);
  }
}

TEST_CASE("A seed that is missing is drawn when the plan is made and stands in its spec") {
  const ContractFiles files;
  const std::string text = files.Spec(
      "zip { (| $RANGE | map { out: 'a = value + random_uniform(maxval=9, dtype=\"int64\")' } |) "
      "(| $RANGE | filter { let: 'u = random_uniform()' predicate: 'u < random_uniform(seed=4)' } "
      "|) } "
      "| map { let: 'u = random_uniform([2])' out: 'x = u + random_normal([2])' } | batch { "
      "batch_size: 9 }");
  const auto plan = PlanText(text), other = PlanText(text);
  REQUIRE(plan.ok());
  REQUIRE(other.ok());
  const std::string spec = (*plan)->spec().DebugString();
  int seeds = 0;
  for (size_t at = spec.find("seed="); at != std::string::npos; at = spec.find("seed=", at + 1))
    ++seeds;
  CHECK(seeds == 5);
  CHECK(absl::StrContains(spec, "u < random_uniform(seed=4)"));
  const auto again = PlanText(spec);
  REQUIRE(again.ok());
  const RunResult first = RunPlan(*plan);
  REQUIRE(first.status.ok());
  CHECK((*again)->spec().DebugString() == spec);
  CHECK(RunPlan(*again).batches == first.batches);
  CHECK_FALSE(RunPlan(*other).batches == first.batches);
}

}  // namespace
}  // namespace penstock::test
