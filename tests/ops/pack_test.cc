// Sequences of documents: their features, what does not fit together, and what is told of them.
// Which document goes where stands in tests/engine/order/packing_test.cc.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

// Document d is 100 d, 100 d + 1, …, of so many tokens; its answer is the second half, and the
// weight of token t is t / 2.
std::string Documents(const std::vector<int64_t>& lengths, const std::string& dtype = "int32") {
  std::string text = "from_tensor_slices { tensor { name: 'n'";
  for (const int64_t length : lengths) absl::StrAppend(&text, " int_value: ", length);
  absl::StrAppend(&text, " } tensor { name: 'i'");
  for (size_t i = 0; i < lengths.size(); ++i) absl::StrAppend(&text, " int_value: ", i);
  return absl::StrCat(text, " } } | map { out: 'tokens = ", dtype,
                      "(arange(n) + i * 100)' out: 'answer = n // 2' out: 'weight = "
                      "float32(arange(n)) * 0.5' out: 'short = arange(n - 1)' } | ");
}

RunResult Run(const std::string& text, const RunOptions& options = {}) {
  return RunText(Stages(text), options);
}

// One tensor of all sequences, one after another.
template <typename T>
std::vector<T> All(const RunResult& result, size_t tensor) {
  std::vector<T> values;
  for (const Batch& batch : result.batches) {
    const std::vector<T> row = batch.As<T>(tensor);
    values.insert(values.end(), row.begin(), row.end());
  }
  return values;
}

using Ints = std::vector<int32_t>;

TEST_CASE("pack: tokens, segments, positions, mask and ends of sequences") {
  const RunResult result =
      Run(Documents({3, 0, 6, 2}) +
          "pack { sequence_length: 8 tokens: 'tokens' pad_id: -1 end_id: 9999 segment_ids: true "
          "positions: true loss_mask: true answer_begin: 'answer' cu_seqlens: true }");
  INFO(result.status.ToString());
  REQUIRE(result.status.ok());
  REQUIRE(result.batches.size() == 2);
  CHECK(All<int32_t>(result, 0) == Ints{0, 1, 2, 9999, 9999, 200, 201, 202,  //
                                        203, 204, 205, 9999, 300, 301, 9999, -1});
  CHECK(All<int32_t>(result, 1) == Ints{1, 1, 1, 1, 2, 3, 3, 3, 1, 1, 1, 1, 2, 2, 2, 0});
  CHECK(All<int32_t>(result, 2) == Ints{0, 1, 2, 3, 0, 0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 0});
  CHECK(All<uint8_t>(result, 3) ==
        std::vector<uint8_t>{0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 1, 1, 0});
  // Its values lie in front of the sizes of its axes.
  const auto ends = [&](size_t batch) {
    const std::string& bytes = result.batches[batch].parts[4][0];
    Ints values(bytes.size() / sizeof(int32_t));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  CHECK(ends(0) == Ints{0, 4, 5, 8});
  CHECK(ends(1) == Ints{0, 4, 7});
}

TEST_CASE("pack: a mask of the user's own, of which an end id has the last value") {
  const RunResult result =
      Run(Documents({3, 0, 2}, "int64") +
          "pack { sequence_length: 8 tokens: 'tokens' end_id: 5000000000 loss_mask: true mask: "
          "'weight' max_documents: 4 cu_seqlens: true } | batch { batch_size: 1 }");
  INFO(result.status.ToString());
  REQUIRE(result.status.ok());
  REQUIRE(result.batches.size() == 1);
  constexpr int64_t kEnd = 5'000'000'000;
  CHECK(All<int64_t>(result, 0) == std::vector<int64_t>{0, 1, 2, kEnd, kEnd, 200, 201, kEnd});
  CHECK(All<float>(result, 1) == std::vector<float>{0, 0.5, 1, 1, 0, 0, 0.5, 0.5});
  CHECK(All<int32_t>(result, 2) == Ints{0, 4, 5, 8, 8});
}

TEST_CASE("pack: without a feature to go by, the mask is true for tokens") {
  const RunResult result = Run(Documents({3, 0, 2}) +
                               "pack { sequence_length: 4 tokens: 'tokens' loss_mask: true "
                               "split_documents: false }");
  REQUIRE(result.status.ok());
  CHECK(All<int32_t>(result, 0) == Ints{0, 1, 2, 0, 200, 201, 0, 0});
  CHECK(All<uint8_t>(result, 1) == std::vector<uint8_t>{1, 1, 1, 0, 1, 1, 0, 0});
}

TEST_CASE("pack: documents that are truncated have no end id") {
  const RunResult result = Run(Documents({5, 1}) +
                               "pack { sequence_length: 4 tokens: 'tokens' end_id: 7 "
                               "long_documents: 'truncate' method: 'best_fit' }");
  REQUIRE(result.status.ok());
  CHECK(All<int32_t>(result, 0) == Ints{0, 1, 2, 3, 100, 7, 0, 0});
}

TEST_CASE("pack: each window begins with an empty sequence") {
  for (const std::string method : {"concat", "best_fit", "first_fit_decreasing"}) {
    INFO(method);
    const RunResult result =
        Run(Documents({1, 1, 1, 1, 1}) +
            "pack { sequence_length: 4 tokens: 'tokens' window: 2 method: '" + method + "' }");
    REQUIRE(result.status.ok());
    CHECK(All<int32_t>(result, 0) == Ints{0, 100, 0, 0, 200, 300, 0, 0, 400, 0, 0, 0});
  }
}

TEST_CASE("pack: what was packed is told") {
  const RunResult result = Run(Documents({3, 0, 6, 2}) +
                               "pack { sequence_length: 8 tokens: 'tokens' } | batch { batch_size: "
                               "2 }");
  REQUIRE(result.status.ok());
  const PackedStats& packed = result.stats.stages[2].packed;
  CHECK(packed.sequences == 2);
  CHECK(packed.tokens == 11);
  CHECK(packed.padding == 5);
  CHECK(packed.documents == 4);
  CHECK(packed.pieces == 4);
  CHECK(result.stats.stages[3].packed.documents == 0);
}

TEST_CASE("pack: a document that does not fit is an error, which may be left out") {
  const std::pair<const char*, const char*> kCases[] = {
      {"long_documents: 'error'",
       "stage pack: expected a document of at most 4 tokens, found 6: long_documents may be "
       "\"split\" or \"truncate\""},
      {"loss_mask: true mask: 'short'",
       "stage pack: mask: expected \"short\" as long as \"tokens\", 2, found 1"},
      {"loss_mask: true answer_begin: 'off'",
       "stage pack: answer_begin: expected \"off\" from 0 to 6, the number of tokens, found 7"},
      {"loss_mask: true answer_begin: 'below'",
       "stage pack: answer_begin: expected \"below\" from 0 to 6, the number of tokens, found -1"},
  };
  for (const auto& [options, message] : kCases) {
    INFO(options);
    const std::string text = Documents({2, 6}) +
                             "map { out: 'tokens = tokens' out: 'off = where(shape(tokens)[0] > "
                             "2, 7, 0)' out: 'below = where(shape(tokens)[0] > 2, -1, 0)' out: "
                             "'short = short' } | pack { sequence_length: 4 tokens: 'tokens' " +
                             options + " }";
    const RunResult result = Run(text);
    INFO(result.status.ToString());
    CHECK(result.batches.empty());
    CHECK(result.status.code() == absl::StatusCode::kDataLoss);
    CHECK(absl::StrContains(result.status.message(), message));
    const RunResult left_out = Run(text + " | ignore_errors {}");
    INFO(left_out.status.ToString());
    CHECK(left_out.status.ok());
    CHECK(!left_out.skipped.empty());
  }
}

TEST_CASE("pack: options that make no sense are refused") {
  const std::pair<const char*, const char*> kCases[] = {
      {"", "sequence_length: expected 1 to 16777216, found 0"},
      {"sequence_length: -4", "sequence_length: expected 1 to 16777216, found -4"},
      {"sequence_length: 16777217", "sequence_length: expected 1 to 16777216, found 16777217"},
      {"sequence_length: 8 window: 0", "window: expected 1 to 1048576, found 0"},
      {"sequence_length: 8 max_documents: 0", "max_documents: expected 1 to 1048576, found 0"},
      {"sequence_length: 8 method: 'best'", "method: expected \"concat\", \"best_fit\""},
      {"sequence_length: 8 method: 'best_fit' split_documents: false",
       "split_documents: expected it with method \"concat\", found \"best_fit\""},
      {"sequence_length: 8 method: 'best_fit' drop_remainder: true",
       "drop_remainder: expected it with method \"concat\", found \"best_fit\""},
      {"sequence_length: 8 long_documents: 'cut'", "long_documents: expected \"split\""},
      {"sequence_length: 8", "tokens: expected the name of a feature, since documents have 4"},
      {"sequence_length: 8 tokens: 'token'", "did you mean \"tokens\"?"},
      {"sequence_length: 8 tokens: 'weight'",
       "tokens: expected \"weight\" as int32 or int64 (?,), found float32 (?,)"},
      {"sequence_length: 8 tokens: 'answer'",
       "tokens: expected \"answer\" as int32 or int64 (?,), found int64 ()"},
      {"sequence_length: 8 tokens: 'tokens' pad_id: 2147483648",
       "pad_id: expected a number of the type of \"tokens\", int32, found 2147483648"},
      {"sequence_length: 8 tokens: 'tokens' end_id: -2147483649",
       "end_id: expected a number of the type of \"tokens\", int32, found -2147483649"},
      {"sequence_length: 8 tokens: 'tokens' mask: 'weight'",
       "mask: expected it with loss_mask, found none"},
      {"sequence_length: 8 tokens: 'tokens' loss_mask: true mask: 'answer'",
       "mask: expected numbers or bools (?), found int64 ()"},
      {"sequence_length: 8 tokens: 'tokens' loss_mask: true answer_begin: 'weight'",
       "answer_begin: expected an int32 or int64 (), found float32 (?,)"},
      {"sequence_length: 8 tokens: 'tokens' loss_mask: true answer_begin: 'answer' mask: 'weight'",
       "mask, answer_begin: expected one of the two, found both"},
  };
  for (const auto& [options, message] : kCases) {
    INFO(options);
    const absl::Status status =
        PlanText(Stages(Documents({2}) + "pack { " + options + " }")).status();
    INFO(status.ToString());
    CHECK(absl::IsInvalidArgument(status));
    CHECK(absl::StrContains(status.message(), message));
  }
  const absl::Status status = PlanText(Stages("range { stop: 3 } | map { out: 'positions = "
                                              "arange(value)' } | pack { sequence_length: 8 }"))
                                  .status();
  CHECK(absl::StrContains(status.message(), "found \"positions\": rename it in a map"));
}

TEST_CASE("pack: a cursor goes on in its window, and one beyond it is an error") {
  const std::string text = Documents({5, 1, 7, 2, 2, 3, 9, 1}) +
                           "pack { sequence_length: 4 tokens: 'tokens' window: 4 method: "
                           "'best_fit' }";
  const auto plan = PlanText(Stages(text));
  REQUIRE(plan.ok());
  const RunResult whole = RunPlan(*plan);
  REQUIRE(whole.status.ok());
  for (size_t step = 0; step < whole.batches.size(); ++step) {
    RunOptions options;
    options.cursor = whole.batches[step].info.cursor;
    const RunResult rest = RunPlan(*plan, options);
    CHECK(rest.status.ok());
    CHECK(options.cursor.size() <= 200);
    REQUIRE(rest.batches.size() == whole.batches.size() - step - 1);
    for (size_t i = 0; i < rest.batches.size(); ++i)
      CHECK(rest.batches[i].parts == whole.batches[step + 1 + i].parts);
  }
}

}  // namespace
}  // namespace penstock::test
