// What lies behind the end of the shortest input of a zip.
#include <string>
#include <vector>

#include "tests/ops/contract_files.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"

namespace penstock::test {
namespace {

RunResult Run(const std::string& spec, const std::string& cursor = "") {
  return RunText(spec, {.workers = 1, .cursor = cursor});
}

TEST_CASE("zip: damage behind the end of a shorter input is not met, however much is asked for") {
  ContractFiles files;
  files.DamageRecord("damaged.tfrecord", 30);
  for (const int batch_size : {1, 4, 30, 100}) {
    for (const char* shorter : {"range { stop: 29 }", "range { stop: 30 }"}) {
      INFO(shorter << ", batches of " << batch_size);
      const std::string batch = absl::StrCat(" | batch { batch_size: ", batch_size, " }");
      const std::string spec = files.Spec(
          absl::StrCat(shorter, " | zip { (| tfrecord { files: 'FOLDER/damaged.tfrecord' } |) }",
                       " | repeat { count: 2 }", batch));
      const RunResult result = Run(spec);
      CHECK(result.status == absl::OkStatus());
      const size_t rows = std::string(shorter).find("29") == std::string::npos ? 60 : 58;
      CHECK(result.batches.size() == (rows + batch_size - 1) / batch_size);
      // The damaged one first: it has been asked for one that the other has not.
      const RunResult other =
          Run(files.Spec(absl::StrCat("tfrecord { files: 'FOLDER/damaged.tfrecord' } | zip { (| ",
                                      shorter, " |) } | repeat { count: 2 }", batch)));
      CHECK(other.status.ok() == (rows == 58));
    }
  }
}

TEST_CASE("zip: rows that are complete do not wait for an input that gives nothing more") {
  // The filter looks for a fourth one for ever.
  const RunResult result = RunText(
      Stages("zip { (| range { stop: 5 } |) (| counter {} | filter { predicate: 'value < 3' "
             "} |) } | batch { batch_size: 1 }"),
      {.workers = 1, .max_steps = 3});
  CHECK(Int64s(result, 1) == std::vector<int64_t>{0, 1, 2});
}

TEST_CASE("take: what is not to come is not looked for") {
  const RunResult result = RunText(Stages(
      "counter {} | filter { predicate: 'value < 3' } | skip { count: 1 } | take { count: 2 } | "
      "batch { batch_size: 4 }"));
  CHECK(result.finished);
  CHECK(Int64s(result) == std::vector<int64_t>{1, 2});
  CHECK(RunText(Stages("counter {} | filter { predicate: 'value < 0' } | skip { count: 1 } | take "
                       "{ count: 0 } | batch { batch_size: 4 }"))
            .finished);
}

TEST_CASE("zip: a cursor behind the end of a pass goes on at the end, and asks nobody") {
  ContractFiles files;
  files.DamageRecord("damaged.tfrecord", 8);
  const std::string spec = files.Spec(
      "tfrecord { files: 'FOLDER/damaged.tfrecord' } | zip { (| range { stop: 7 } |) } "
      "| batch { batch_size: 4 } | repeat { count: 2 }");
  const RunResult whole = Run(spec);
  REQUIRE(whole.batches.size() == 4);
  CHECK(whole.status == absl::OkStatus());
  for (size_t step = 0; step < 4; ++step) {
    const RunResult rest = Run(spec, whole.batches[step].info.cursor);
    CHECK(rest.status == absl::OkStatus());
    REQUIRE(rest.batches.size() == 3 - step);
    for (size_t i = 0; i < rest.batches.size(); ++i) {
      CHECK(rest.batches[i] == whole.batches[step + 1 + i]);
      CHECK(rest.batches[i].info.cursor == whole.batches[step + 1 + i].info.cursor);
    }
  }
}

TEST_CASE("zip: elements of fewer references than those beside them, next to records of files") {
  ContractFiles files;
  const RunResult result = Run(
      files.Spec("$SHARDS | zip { (| concatenate { (| range { stop: 3 } |) (| range { stop: 3 } "
                 "| enumerate {} | map { out: 'value = feature(\"1\")' structure: 'null' } |) "
                 "} | filter { predicate: 'value >= 0' } |) } | map { out: 'value "
                 "= feature(\"1\")' structure: 'null' } | batch { batch_size: 6 }"));
  INFO(result.status.ToString());
  REQUIRE(result.batches.size() == 1);
  CHECK(Int64s(result) == std::vector<int64_t>{0, 1, 2, 0, 1, 2});
}

TEST_CASE("an endless repeat of which nothing is repeated has no elements") {
  const char kSpec[] =
      "range { stop: 5 } | repeat {} | repeat { count: 0 } | concatenate { (| range { stop: 40 } "
      "|) "
      "} | shuffle { buffer_size: 8 seed: 1 } | batch { batch_size: 12 }";
  const RunResult whole = Run(Stages(kSpec));
  REQUIRE(whole.batches.size() == 4);
  const RunResult rest = Run(Stages(kSpec), whole.batches[2].info.cursor);
  CHECK(rest.status == absl::OkStatus());
  REQUIRE(rest.batches.size() == 1);
  CHECK(rest.batches[0] == whole.batches[3]);
}

}  // namespace
}  // namespace penstock::test
