// Ops that draw, compared with tf.data's by property, and what caches keep.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

std::vector<int64_t> Numbers(const std::string& text, size_t tensor = 0) {
  auto plan = PlanText(Stages(text));
  INFO(text << "\n" << plan.status().ToString());
  REQUIRE(plan.ok());
  const RunResult result = RunPlan(*plan, {.workers = 2, .max_steps = 4000});
  INFO(result.status.ToString());
  REQUIRE(result.status.ok());
  std::vector<int64_t> numbers;
  for (const Batch& batch : result.batches) {
    for (const int64_t number : batch.As<int64_t>(tensor)) numbers.push_back(number);
  }
  return numbers;
}

// Whether `found` of `total` draws are within five standard deviations of what a probability makes
// expect.
bool IsLikely(double found, double total, double probability) {
  const double deviation = std::sqrt(total * probability * (1 - probability));
  return std::abs(found - total * probability) <= 5 * deviation + 1e-9;
}

TEST_CASE("random: 32 bits, by seed, stage and epoch") {
  const std::vector<int64_t> numbers =
      Numbers("random { seed: 5 } | take { count: 20000 } | batch { batch_size: 1000 }");
  REQUIRE(numbers.size() == 20000);
  double ones = 0;
  for (const int64_t number : numbers) {
    REQUIRE(number >= 0);
    REQUIRE(number < int64_t{1} << 32);
    ones += __builtin_popcountll(number);
  }
  CHECK(IsLikely(ones, 32.0 * 20000, 0.5));
  CHECK(std::set<int64_t>(numbers.begin(), numbers.end()).size() > 19990);

  const std::string four = " | take { count: 4 } | repeat { count: 2 } | batch { batch_size: 4 }";
  const std::vector<int64_t> alike = Numbers("random { seed: 5 }" + four);
  CHECK(std::equal(alike.begin(), alike.begin() + 4, alike.begin() + 4));
  CHECK(std::equal(alike.begin(), alike.begin() + 4, numbers.begin()));
  const std::vector<int64_t> anew =
      Numbers("random { seed: 5 rerandomize_each_iteration: true }" + four);
  CHECK(std::equal(alike.begin(), alike.begin() + 4, anew.begin()));
  CHECK_FALSE(std::equal(anew.begin(), anew.begin() + 4, anew.begin() + 4));
  CHECK_FALSE(Numbers("random { seed: 6 }" + four) == alike);
}

TEST_CASE(
    "A missing seed of random, sample_from_datasets and rejection_resample is drawn and shown") {
  const char* const kTexts[] = {
      "random {} | take { count: 3 }",
      "sample_from_datasets { (| range { stop: 3 } |) (| range { stop: 3 } |) }",
      "range { stop: 3 } | rejection_resample { class_func: 'value' target_dist: 1 target_dist: 1 "
      "target_dist: 1 }"};
  for (const char* const text : kTexts) {
    INFO(text);
    auto plan = PlanText(Stages(text));
    REQUIRE(plan.ok());
    CHECK(absl::StrContains((*plan)->spec().DebugString(), "seed: "));
  }
}

TEST_CASE("sample_from_datasets draws by weight, and every input keeps its order") {
  struct Case {
    std::string weights;
    std::vector<double> parts;
  };
  const Case kCases[] = {{"", {1, 1, 1}},
                         {"weight: 1 weight: 2 weight: 5", {1, 2, 5}},
                         {"weight: 0.1 weight: 0 weight: 0.9", {1, 0, 9}}};
  for (const Case& c : kCases) {
    INFO(c.weights);
    const std::vector<int64_t> numbers = Numbers(absl::StrCat(
        "sample_from_datasets { (| counter {} |) (| counter { start: 1000000 } |) (| counter { "
        "start: 2000000 } |) seed: 3 ",
        c.weights, " } | take { count: 20000 } | batch { batch_size: 1000 }"));
    REQUIRE(numbers.size() == 20000);
    std::vector<int64_t> next = {0, 1000000, 2000000};
    for (const int64_t number : numbers) REQUIRE(number == next[number / 1000000]++);
    const double total = std::accumulate(c.parts.begin(), c.parts.end(), 0.0);
    for (size_t i = 0; i < 3; ++i)
      CHECK(IsLikely(static_cast<double>(next[i] - 1000000 * static_cast<int64_t>(i)), 20000,
                     c.parts[i] / total));
  }
}

TEST_CASE(
    "sample_from_datasets ends with the last input, or with the first one that is drawn in vain") {
  const std::string inputs =
      "sample_from_datasets { (| range { stop: 50 } |) (| range { start: 100 stop: 103 } |) seed: "
      "7 ";
  std::vector<int64_t> all = Numbers(inputs + "} | batch { batch_size: 10 }");
  std::sort(all.begin(), all.end());
  std::vector<int64_t> expected(50);
  std::iota(expected.begin(), expected.end(), 0);
  for (const int64_t number : {100, 101, 102}) expected.push_back(number);
  CHECK(all == expected);

  const std::vector<int64_t> some =
      Numbers(inputs + "stop_on_empty_dataset: true } | batch { batch_size: 10 }");
  CHECK(some.size() < all.size());
  // It ends when an input is drawn that has no more: the short one is over before.
  CHECK(std::count_if(some.begin(), some.end(), [](int64_t n) { return n >= 100; }) == 3);
}

TEST_CASE("What is no set of weights, choices, windows or buckets is refused") {
  const std::pair<const char*, const char*> kCases[] = {
      {"sample_from_datasets { (| range { stop: 3 } |) weight: -1 }",
       "expected at least 0, found -1"},
      {"sample_from_datasets { (| range { stop: 3 } |) weight: 1 weight: 2 }",
       "expected one for each input, 1 in all, found 2"},
      {"sample_from_datasets { (| range { stop: 3 } |) weight: inf }", "expected a finite sum"},
      {"sample_from_datasets {}", "expected at least one input"},
      {"sample_from_datasets { (| range { stop: 3 } |) (| range { stop: 3 } | enumerate {} |) }",
       "input 1: expected elements like those of input 0, value int64 ()"},
      {"range { stop: 3 } | enumerate {} | choose_from_datasets { (| range { stop: 3 } |) }",
       "expected choices that are one int64 () each"},
      {"range { stop: 3 } | window { size: 0 }", "size: expected 1 to"},
      {"range { stop: 3 } | window { size: 2 shift: 0 }", "shift: expected 1 to"},
      {"range { stop: 3 } | window { size: 2 stride: -1 }", "stride: expected 1 to"},
      {"range { stop: 3 } | window { size: 2 (| batch { batch_size: 0 } |) }",
       "batch_size: expected 1 to"},
      {"window_part {}", "expected to stand inside of window"},
      {"range { stop: 3 } | window { size: 2 (| window_part { component: 0 } |) }",
       "component: expected one of the element"},
      {"range { stop: 3 } | rebatch { batch_size: 2 }",
       "expected dense features with at least one axis"},
      {"range { stop: 3 } | batch { batch_size: 2 } | rebatch {}",
       "expected at least one, found none"},
      {"range { stop: 3 } | group_by_window { key: 'value' }", "expected one of window_size and"},
      {"range { stop: 3 } | group_by_window { key: 'value / 2' window_size: 2 }",
       "key: expected an integer (), found float64 ()"},
      {"range { stop: 3 } | group_by_window { key: 'value' window_size: 0 }",
       "window_size: expected at least 1, found 0"},
      {"range { stop: 3 } | bucket_by_sequence_length { element_length: 'value' bucket_boundary: 2 "
       "bucket_boundary: 2 bucket_batch_size: 1 bucket_batch_size: 1 bucket_batch_size: 1 }",
       "expected rising numbers, found 2 before 2"},
      {"range { stop: 3 } | bucket_by_sequence_length { element_length: 'value' bucket_boundary: 2 "
       "bucket_batch_size: 1 }",
       "expected one more than boundaries, 2, found 1"},
      {"range { stop: 3 } | bucket_by_sequence_length { element_length: 'value' bucket_boundary: 0 "
       "bucket_batch_size: 1 bucket_batch_size: 1 pad_to_bucket_boundary: true }",
       "bucket_boundary: expected 1 to 268435456 with pad_to_bucket_boundary, found 0"},
      {"range { stop: 3 } | bucket_by_sequence_length { element_length: 'value' bucket_boundary: 7 "
       "bucket_boundary: 268435457 bucket_batch_size: 1 bucket_batch_size: 1 bucket_batch_size: 1 "
       "pad_to_bucket_boundary: true }",
       "bucket_boundary: expected 1 to 268435456 with pad_to_bucket_boundary, found 268435457"},
      {"range { stop: 3 } | enumerate {} | unique {}",
       "expected one tensor of int32, int64 or string"},
      {"range { stop: 3 } | scan { initial_state { name: 's' int_value: 1 } state: 's = s / 2' "
       "out: "
       "'a = s' }",
       "state \"s\": expected int64 () as in initial_state, found float64 ()"},
      {"range { stop: 3 } | scan { initial_state { name: 'value' int_value: 1 } state: 'value = 1' "
       "out: 'a = value' }",
       "expected a name that no feature has"},
      {"range { stop: 3 } | scan { initial_state { name: 's' int_value: 1 } state: 't = s' out: 'a "
       "= "
       "s' }",
       "expected each name of initial_state once, found \"t\""},
      {"range { stop: 3 } | scan { initial_state { name: 's' int_value: 1 } state: 's = s' "
       "out: 'a = random_uniform()' }",
       "expected no random functions beside a state: draw in a map before this stage"},
      {"range { stop: 3 } | reduce { initial_state { name: 's' int_value: 1 } "
       "state: 's = s + int64(random_uniform(maxval=9))' }",
       "expected no random functions beside a state: draw in a map before this stage"},
      {"range { stop: 3 } | group_by_window { key: 'int64(random_uniform(maxval=9))' "
       "window_size: 2 (| batch { batch_size: 2 } |) }",
       "key: expected no random functions: draw in a map before this stage"},
      {"range { stop: 3 } | group_by_window { key: 'value' window_size_of_key: "
       "'1 + int64(random_uniform(maxval=9))' (| batch { batch_size: 2 } |) }",
       "window_size_of_key: expected no random functions"},
      {"range { stop: 3 } | bucket_by_sequence_length { element_length: "
       "'int64(random_uniform(maxval=9))' bucket_boundary: 2 bucket_batch_size: 1 "
       "bucket_batch_size: 1 }",
       "element_length: expected no random functions"},
      {"range { stop: 3 } | rejection_resample { class_func: 'int64(random_uniform(maxval=2))' "
       "target_dist: 1 target_dist: 1 }",
       "class_func: expected no random functions"},
      {"range { stop: 3 } | pad_to_cardinality { cardinality: 4 }",
       "expected elements that are dicts"},
      {"range { stop: 3 } | assert_cardinality { cardinality: -2 }", "expected -1 (without end)"},
      {"range { stop: 3 } | rejection_resample { class_func: 'value' target_dist: 0 }",
       "expected a finite sum above 0"},
      {"range { stop: 3 } | rejection_resample { class_func: 'value' target_dist: 1 initial_dist: "
       "1 "
       "initial_dist: 1 }",
       "expected as many classes as target_dist has, 1, found 2"},
      {"range { stop: 3 } | cache { max_bytes: -1 }", "max_bytes: expected at least 0"},
      {"range { stop: 3 } | window { size: 2 (| cache {} |) }", "outside of nested stages"},
      {"range { stop: 3 } | flat_map { (| range { stop: 2 } | cache {} |) }",
       "outside of nested stages"},
      {"range { stop: 3 } | interleave { (| zip { (| range { stop: 2 } | cache {} |) } |) }",
       "outside of nested stages"},
  };
  for (const auto& [text, message] : kCases) {
    INFO(text);
    const auto plan = PlanText(Stages(text));
    INFO(plan.status().ToString());
    CHECK(absl::IsInvalidArgument(plan.status()));
    CHECK(absl::StrContains(plan.status().message(), message));
  }
}

TEST_CASE("rejection_resample makes classes as frequent as they should be") {
  for (const char* const initial : {"initial_dist: 0.7 initial_dist: 0.2 initial_dist: 0.1", ""}) {
    INFO(initial);
    // Of ten numbers, 7, 2 and 1 are of the classes 0, 1 and 2.
    const std::vector<int64_t> classes = Numbers(absl::StrCat(
        "random { seed: 1 } | map { out: 'value = value % 10' structure: 'null' } | take { count: "
        "30000 } | rejection_resample { class_func: '(value >= 7) + int64(value == 9)' "
        "target_dist: "
        "2 target_dist: 1 target_dist: 1 ",
        initial, " seed: 9 } | batch { batch_size: 500 drop_remainder: true }"));
    const double total = static_cast<double>(classes.size());
    CHECK(total > 8000);
    for (const auto& [number, probability] :
         std::map<int64_t, double>{{0, 0.5}, {1, 0.25}, {2, 0.25}})
      CHECK(IsLikely(static_cast<double>(std::count(classes.begin(), classes.end(), number)), total,
                     probability));
  }
}

TEST_CASE("rejection_resample names a class that there is not") {
  auto plan = PlanText(Stages(
      "range { stop: 9 } | rejection_resample { class_func: 'value - 3' target_dist: 1 seed: 1 }"));
  REQUIRE(plan.ok());
  const RunResult result = RunPlan(*plan);
  CHECK(absl::IsInvalidArgument(result.status));
  CHECK(absl::StrContains(result.status.message(), "expected a class from 0 to 0, found -3"));
}

TEST_CASE("cache: what stands before it is one pass, whatever is kept") {
  for (const char* const limit : {"", "max_bytes: 0", "max_bytes: 2500"}) {
    INFO(limit);
    const std::vector<int64_t> numbers =
        Numbers(absl::StrCat("range { stop: 90 } | shuffle { buffer_size: 90 seed: 2 } | cache { ",
                             limit, " } | repeat { count: 3 } | batch { batch_size: 90 }"));
    REQUIRE(numbers.size() == 270);
    CHECK_FALSE(std::is_sorted(numbers.begin(), numbers.begin() + 90));
    CHECK(std::equal(numbers.begin(), numbers.begin() + 90, numbers.begin() + 90));
    CHECK(std::equal(numbers.begin(), numbers.begin() + 90, numbers.begin() + 180));
  }
}

}  // namespace
}  // namespace penstock::test
