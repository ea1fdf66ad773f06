// What becomes of a pass's last elements, and what the options of the batch ops refuse.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

using Values = std::vector<int64_t>;

Values Numbers(const std::string& part) {
  const auto* begin = reinterpret_cast<const int64_t*>(part.data());
  return Values(begin, begin + part.size() / sizeof(int64_t));
}

// The values, with the valid rows of every batch in front.
std::vector<Values> Batches(const std::string& text) {
  const RunResult result = RunText(Stages(text));
  CHECK(result.status == absl::OkStatus());
  std::vector<Values> batches;
  for (const Batch& batch : result.batches) {
    Values values = batch.As<int64_t>(0);
    CHECK(values.size() == std::max(batch.info.rows, batch.info.shape_rows));
    values.insert(values.begin(), batch.info.rows);
    batches.push_back(std::move(values));
  }
  return batches;
}

TEST_CASE("the last batch is kept, dropped, filled up with zeros or with the pass's beginning") {
  const struct {
    const char* stages;
    std::vector<Values> batches;
  } cases[] = {
      {"range { start: 1 stop: 8 } | batch { batch_size: 4 remainder: KEEP }",
       {{4, 1, 2, 3, 4}, {3, 5, 6, 7}}},
      {"range { start: 1 stop: 8 } | batch { batch_size: 4 remainder: DROP }", {{4, 1, 2, 3, 4}}},
      {"range { start: 1 stop: 8 } | batch { batch_size: 4 remainder: PAD }",
       {{4, 1, 2, 3, 4}, {3, 5, 6, 7, 0}}},
      {"range { start: 1 stop: 8 } | batch { batch_size: 4 remainder: WRAP }",
       {{4, 1, 2, 3, 4}, {4, 5, 6, 7, 1}}},
      // Full batches stay what they are.
      {"range { stop: 4 } | batch { batch_size: 2 remainder: PAD }", {{2, 0, 1}, {2, 2, 3}}},
      {"range { stop: 4 } | batch { batch_size: 2 remainder: WRAP }", {{2, 0, 1}, {2, 2, 3}}},
      // A pass shorter than a batch goes round several times; one without elements makes none.
      {"range { start: 7 stop: 10 } | batch { batch_size: 8 remainder: WRAP }",
       {{8, 7, 8, 9, 7, 8, 9, 7, 8}}},
      {"range { stop: 0 } | batch { batch_size: 8 remainder: WRAP }", {}},
      {"range { stop: 0 } | batch { batch_size: 8 remainder: PAD }", {}},
      // Each pass ends by itself.
      {"range { start: 1 stop: 4 } | batch { batch_size: 2 remainder: WRAP } | repeat { count: 2 }",
       {{2, 1, 2}, {2, 3, 1}, {2, 1, 2}, {2, 3, 1}}},
      {"range { start: 1 stop: 4 } | repeat { count: 2 } | batch { batch_size: 4 remainder: WRAP }",
       {{4, 1, 2, 3, 1}, {4, 2, 3, 1, 2}}},
      // A map behind the batch sees elements, and no others.
      {"range { stop: 3 } | batch { batch_size: 2 remainder: PAD } | map { out: 'a = value + 5' }",
       {{2, 5, 6}, {1, 7, 0}}},
      // Whether the rest says the same or nothing.
      {"range { stop: 3 } | batch { batch_size: 2 remainder: DROP drop_remainder: true }",
       {{2, 0, 1}}},
      {"range { stop: 3 } | batch { batch_size: 2 remainder: PAD drop_remainder: false }",
       {{2, 0, 1}, {1, 2, 0}}},
      {"range { stop: 3 } | padded_batch { batch_size: 2 remainder: PAD padding_value { feature: "
       "'value' int64_value: -9 } }",
       {{2, 0, 1}, {1, 2, -9}}},
      {"range { stop: 3 } | ragged_batch { batch_size: 2 remainder: WRAP }",
       {{2, 0, 1}, {2, 2, 0}}},
  };
  for (const auto& c : cases) {
    INFO(c.stages);
    CHECK(Batches(c.stages) == c.batches);
  }
}

TEST_CASE("a shuffled pass goes on with the beginning of its own order") {
  const std::vector<Values> batches = Batches(
      "range { stop: 10 } | shuffle { buffer_size: 10 seed: 3 } | batch { batch_size: 7 remainder: "
      "WRAP } | repeat { count: 2 }");
  REQUIRE(batches.size() == 4);
  for (const size_t pass : {0, 2}) {
    const Values& first = batches[pass];
    const Values& last = batches[pass + 1];
    CHECK(Values(last.begin() + 4, last.end()) == Values(first.begin() + 1, first.begin() + 5));
  }
  CHECK(batches[0] != batches[2]);
}

TEST_CASE("rows of any size that fill a batch up") {
  ScratchFolder folder;
  WriteLists(folder / "lists.tfrecord", 2, 3);  // n = 2, 3, 4: as many ints; 2, 3 and 0 words
  const std::string source = absl::StrCat(
      "tfrecord { files: '", folder / "lists.tfrecord",
      "' } | parse_example { feature { key: 'ints' int64 { variable_length: true } } feature { "
      "key: 'words' bytes { variable_length: true } } feature { key: 'n' int64 {} } } | ");
  const auto strings = [](const std::vector<std::string>& parts) {
    std::vector<std::string> values;
    const auto* offsets = reinterpret_cast<const int64_t*>(parts[0].data());
    for (size_t i = 0; i + 1 < parts[0].size() / sizeof(int64_t); ++i)
      values.push_back(parts[1].substr(offsets[i], offsets[i + 1] - offsets[i]));
    return values;
  };

  RunResult result =
      RunText(Stages(source +
                     "padded_batch { batch_size: 5 remainder: PAD padding_value { feature: 'ints' "
                     "int64_value: -1 } padding_value { feature: 'words' bytes_value: 'none' } }"));
  REQUIRE(result.batches.size() == 1);
  Batch batch = result.batches[0];
  CHECK(batch.info.rows == 3);
  CHECK(batch.info.shape_rows == 5);
  CHECK(Numbers(batch.parts[0][1]) == Values{5, 4});
  CHECK(Numbers(batch.parts[0][0]) == Values{2000, 1999, -1, -1, 3000, 2999, 2998, -1, 4000, 3999,
                                             3998, 3997, -1, -1, -1,   -1,   -1,   -1, -1,   -1});
  CHECK(Numbers(batch.parts[1][2]) == Values{5, 3});
  CHECK(strings(batch.parts[1]) ==
        std::vector<std::string>{"xx20", "xx21", "none", "xxx30", "xxx31", "xxx32", "none", "none",
                                 "none", "none", "none", "none", "none", "none", "none"});
  CHECK(batch.As<int64_t>(2) == Values{2, 3, 4, 0, 0});

  result = RunText(Stages(source + "ragged_batch { batch_size: 5 remainder: PAD }"));
  REQUIRE(result.batches.size() == 1);
  batch = result.batches[0];
  CHECK(batch.info.rows == 3);
  CHECK(Numbers(batch.parts[0][1]) == Values{0, 2, 5, 9, 9, 9});
  CHECK(Numbers(batch.parts[1][2]) == Values{0, 2, 5, 5, 5, 5});
  CHECK(strings(batch.parts[1]).size() == 5);
  CHECK(batch.As<int64_t>(2) == Values{2, 3, 4, 0, 0});

  result = RunText(Stages(source + "take { count: 1 } | batch { batch_size: 3 remainder: PAD }"));
  REQUIRE(result.batches.size() == 1);
  batch = result.batches[0];
  CHECK(batch.info.rows == 1);
  CHECK(Numbers(batch.parts[0][0]) == Values{2000, 1999, 0, 0, 0, 0});
  CHECK(Numbers(batch.parts[0][1]) == Values{3, 2});
  CHECK(strings(batch.parts[1]) == std::vector<std::string>{"xx20", "xx21", "", "", "", ""});
}

TEST_CASE("what follows a padded batch sees its padding") {
  ScratchFolder folder;
  WriteLists(folder / "lists.tfrecord", 0, 5);
  const std::string stages = absl::StrCat(
      "tfrecord { files: '", folder / "lists.tfrecord",
      "' } | parse_example { feature { key: 'ints' int64 { variable_length: true } } } | "
      "padded_batch { batch_size: 2 drop_remainder: true padding_value { feature: 'ints' "
      "int64_value: "
      "-7 } }");
  const RunResult padded = RunText(Stages(stages));
  const RunResult mapped = RunText(Stages(stages + " | map { out: 'a = ints + 1' }"));
  const RunResult rows = RunText(Stages(stages + " | unbatch {}"));
  REQUIRE(padded.batches.size() == 2);
  REQUIRE(mapped.batches.size() == 2);
  REQUIRE(rows.batches.size() == 4);
  bool has_padding = false;
  for (size_t i = 0; i < 2; ++i) {
    std::vector<int64_t> values = Numbers(padded.batches[i].parts[0][0]);
    has_padding = has_padding || std::count(values.begin(), values.end(), -7) > 0;
    std::vector<int64_t> joined = Numbers(rows.batches[2 * i].parts[0][0]);
    const std::vector<int64_t> second = Numbers(rows.batches[2 * i + 1].parts[0][0]);
    joined.insert(joined.end(), second.begin(), second.end());
    CHECK(joined == values);
    for (int64_t& value : values) ++value;
    CHECK(Numbers(mapped.batches[i].parts[0][0]) == values);
  }
  CHECK(has_padding);
}

TEST_CASE("a batch that is an element takes the memory of its rows, not of those it might have") {
  const RunResult result = RunText(
      Stages("range { stop: 3 } | map { out: 'x = random_uniform([3000], seed=1)' } | batch "
             "{ batch_size: 16000000 } | batch { batch_size: 1 }"));
  INFO(result.status.ToString());
  REQUIRE(result.batches.size() == 1);
  // Behind the sizes.
  CHECK(result.batches[0].As<float>(0).size() >= 9000);
}

TEST_CASE("a pass that fails within a batch fails, though the batch is left out") {
  for (const char* const remainder : {"KEEP", "PAD", "WRAP"}) {
    INFO(remainder);
    const RunResult result = RunText(
        Stages(std::string("range { stop: 6 } | assert_cardinality { cardinality: 10 } | batch { "
                           "batch_size: 4 remainder: ") +
               remainder + " } | skip { count: 2 }"));
    CHECK(result.status.code() == absl::StatusCode::kFailedPrecondition);
    CHECK(result.batches.empty());
  }
}

TEST_CASE("what the batch ops refuse") {
  ScratchFolder folder;
  WriteLists(folder / "lists.tfrecord", 0, 9);
  const struct {
    const char* stage;
    const char* error;
  } cases[] = {
      {"batch { batch_size: 2 remainder: PAD drop_remainder: true }",
       "remainder and drop_remainder contradict each other: PAD and true"},
      {"ragged_batch { batch_size: 2 remainder: DROP drop_remainder: false }",
       "contradict each other: DROP and false"},
      {"padded_batch { }", "batch_size: expected 1 to"},
      {"padded_batch { batch_size: 2 padded_shape { feature: 'int' shape: 3 } }",
       "no feature \"int\", did you mean \"ints\"?"},
      {"padded_batch { batch_size: 2 padded_shape { feature: 'ints' } }",
       "padded_shape of \"ints\": expected 1 sizes"},
      {"padded_batch { batch_size: 2 padded_shape { feature: 'names' shape: 2 } }",
       "expected 1 sizes, each -1 or at least that of the feature's (3,), found (2,)"},
      {"padded_batch { batch_size: 2 padded_shape { feature: 'ints' shape: -2 } }", "found ("},
      {"padded_batch { batch_size: 2 padded_shape { feature: 'ints' shape: 9 } padded_shape { "
       "feature: 'ints' shape: 9 } }",
       "given twice"},
      {"padded_batch { batch_size: 2 padding_value { feature: 'ints' float_value: 1 } }",
       "padding_value of \"ints\": expected an int64_value or uint64_value in the range of int64"},
      {"padded_batch { batch_size: 2 padding_value { feature: 'ints' uint64_value: "
       "9223372036854775808 } }",
       "in the range of int64"},
      {"padded_batch { batch_size: 2 padding_value { feature: 'words' int64_value: 1 } }",
       "expected a bytes_value for string"},
      {"padded_batch { batch_size: 2 padding_value { feature: 'ints' } }",
       "expected an int64_value"},
      {"map { out: 'a = ints + words' }",
       "string_join: a: expected a string or a tensor of strings, found int64 (?,)"},
      {"map { out: 'a = ints[0, 0]' }", "expected at most 1 indices, found 2 for int64 (?,)"},
  };
  for (const auto& c : cases) {
    INFO(c.stage);
    const auto plan = PlanText(Stages(absl::StrCat(
        "tfrecord { files: '", folder / "lists.tfrecord",
        "' } | parse_example { feature { key: 'ints' int64 { variable_length: true } } feature { "
        "key: 'words' bytes { variable_length: true } } feature { key: 'n' int64 {} } feature { "
        "key: 'floats' float { variable_length: true } } feature { key: 'names' bytes { shape: 3 } "
        "} } | ",
        c.stage)));
    CHECK(plan.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(absl::StrContains(plan.status().message(), c.error));
    CHECK_FALSE(plan.ok());
    INFO(plan.status().ToString());
  }
}

// The numbers of rows, and where the offending one lies.
TEST_CASE("a row that does not fit its batch is named with its record") {
  ScratchFolder folder;
  WriteLists(folder / "lists.tfrecord", 0, 9);
  const std::string source = absl::StrCat(
      "tfrecord { files: '", folder / "lists.tfrecord",
      "' } | parse_example { feature { key: 'ints' int64 { variable_length: true } } } | ");
  const struct {
    const char* stage;
    std::vector<const char*> parts;
  } cases[] = {
      {"skip { count: 4 } | batch { batch_size: 3 }",
       {"stage batch: feature \"ints\": the rows of a batch have different shapes: the first has "
        "(4,), row 1 has (5,)",
        "lists.tfrecord, record 5, offset "}},
      {"padded_batch { batch_size: 9 padded_shape { feature: 'ints' shape: 4 } }",
       {"stage padded_batch: feature \"ints\": larger than what it is to be padded to: (5,) > (4,)",
        "lists.tfrecord, record 5, offset "}},
  };
  for (const auto& c : cases) {
    INFO(c.stage);
    const RunResult result = RunText(Stages(source + c.stage));
    CHECK(result.batches.empty());
    INFO(result.status.ToString());
    for (const char* part : c.parts) CHECK(absl::StrContains(result.status.message(), part));
  }
}

}  // namespace
}  // namespace penstock::test
