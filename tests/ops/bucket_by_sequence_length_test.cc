// Lengths and boundaries that no row should have. What tf.data makes of others stands in
// tests/golden/make_grouping_goldens.py.
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

// Element e is 0 to e.
const std::string kLists = "range { stop: 6 } | map { out: 'v = arange(value + 1)' } | ";

TEST_CASE("bucket_by_sequence_length: a length below 0 is of the first bucket, as in tf.data") {
  const auto run = [](const std::string& length) {
    return RunText(Stages(absl::StrCat(
        kLists, "bucket_by_sequence_length { element_length: '", length,
        "' bucket_boundary: 9 bucket_boundary: 20 bucket_batch_size: 6 bucket_batch_size: 1 "
        "bucket_batch_size: 1 pad_to_bucket_boundary: true }")));
  };
  const RunResult expected = run("shape(v)[0]");
  INFO(expected.status.ToString());
  REQUIRE(expected.status.ok());
  REQUIRE(expected.batches.size() == 1);
  for (const char* const length : {"shape(v)[0] - 100", "shape(v)[0] - 9223372036854775807"}) {
    INFO(length);
    const RunResult found = run(length);
    CHECK(found.status.ok());
    CHECK(found.batches == expected.batches);
  }
}

TEST_CASE("bucket_by_sequence_length: boundaries may be any where rows are not padded to them") {
  const RunResult result = RunText(
      Stages("range { stop: 4 } | bucket_by_sequence_length { element_length: 'value - 2' "
             "bucket_boundary: -1 bucket_boundary: 1 bucket_batch_size: 2 bucket_batch_size: 2 "
             "bucket_batch_size: 2 }"));
  CHECK(result.status.ok());
  CHECK(Int64s(result) == std::vector<int64_t>{1, 2, 0, 3});
}

TEST_CASE("bucket_by_sequence_length: a row that its boundary makes too large is an error") {
  const std::pair<const char*, const char*> kCases[] = {
      {"stack(value + 1, 1)", "(268435455, 268435455)"},
      // Beyond 63 bits.
      {"stack(value + 1, 1, 1)", "(268435455, 268435455, 268435455)"},
  };
  for (const auto& [sizes, shape] : kCases) {
    INFO(sizes);
    const RunResult result = RunText(Stages(absl::StrCat(
        "range { stop: 3 } | map { out: 'v = reshape(arange(value + 1), ", sizes,
        ")' } | bucket_by_sequence_length { element_length: 'shape(v)[0]' bucket_boundary: "
        "268435456 bucket_batch_size: 3 bucket_batch_size: 1 pad_to_bucket_boundary: true }")));
    INFO(result.status.ToString());
    CHECK(result.batches.empty());
    CHECK(result.status.code() == absl::StatusCode::kDataLoss);
    CHECK(absl::StrContains(result.status.message(),
                            absl::StrCat("feature \"v\": padded row larger than limit: ", shape,
                                         " > 268435456 elements")));
  }
}

}  // namespace
}  // namespace penstock::test
