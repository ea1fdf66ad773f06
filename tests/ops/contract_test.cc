// The contract of every op, over a table of pipelines (contract_pipelines.h): the same bytes
// whatever the workers and delays; a cursor of any step goes on with the same tail; the end and
// errors come in order and stay. (What cursors refuse: cursor_test.cc.)
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "penstock/v1/ops.pb.h"
#include "tests/ops/contract.h"
#include "tests/ops/contract_files.h"
#include "tests/ops/contract_pipelines.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"

namespace penstock::test {
namespace {

TEST_CASE("Every op of a spec stands in the contract's table") {
  KeptFiles files;
  std::string all;
  for (const char* const text : kContractPipelines) all += files.Spec(text);
  const google::protobuf::OneofDescriptor* const ops =
      v1::Stage::descriptor()->FindOneofByName("op");
  REQUIRE(ops != nullptr);
  for (int i = 0; i < ops->field_count(); ++i) {
    const std::string name = ops->field(i)->name();
    // It hands on what it gets; KeptFiles runs it, and the table loads what it wrote.
    if (name == "save") continue;
    // They want an interpreter: tests/client/python_functions_test.py and python_generator_test.py
    // hold them to the same.
    if (name == "python" || name == "from_generator") continue;
    INFO("no pipeline of tests/ops/contract_pipelines.h has the op " << name);
    CHECK(absl::StrContains(all, absl::StrCat(" ", name, " {")));
  }
}

TEST_CASE("Every op: the same bytes, whatever the workers and delays") {
  KeptFiles files;
  for (const char* const text : kContractPipelines) {
    INFO(text);
    Contract contract(files.Spec(text));
    CHECK(contract.reference().status == absl::OkStatus());
    contract.CheckWorkers();
    for (const uint64_t seed : {10, 20}) contract.CheckDelays(seed);
  }
}

TEST_CASE(
    "Every op: a cursor of any step goes on with the same tail, and so does one of the tail") {
  KeptFiles files;
  for (const char* const text : kContractPipelines) {
    INFO(text);
    Contract contract(files.Spec(text));
    for (const uint64_t seed : {1, 2}) contract.CheckCursors(seed);
  }
}

TEST_CASE("Every op: a stream that is stopped in the middle stops") {
  KeptFiles files;
  for (const char* const text : kContractPipelines) {
    INFO(text);
    Contract(files.Spec(text)).CheckStop();
  }
}

// Draws pipelines: a source, some order ops, a batch, some more.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  uint64_t Below(uint64_t bound) { return engine_() % bound; }

  std::string Pipeline() {
    std::string text = Chain(5, /*depth=*/0);
    absl::StrAppend(&text, " | batch { batch_size: ", 1 + Below(40),
                    Below(3) == 0 ? " drop_remainder: true" : "", " }");
    for (uint64_t ops = Below(3); ops > 0; --ops) absl::StrAppend(&text, " | ", CountingOp(6));
    return text + " | take { count: 60 }";
  }

 private:
  std::string Source() {
    static constexpr const char* kSources[] = {"$SHARDS", "$TURNS",     "$BIG",   "$LATE",
                                               "$WIDE",   "$GZIP",      "$LINES", "$PIECES",
                                               "$HURT",   "$CUT_SHORT", "$LIST"};
    if (Below(2) == 0)
      return absl::StrCat("range { start: ", Below(9), " stop: ", Below(120),
                          " step: ", 1 + Below(3), " }");
    if (Below(6) == 0) return absl::StrCat("$WIDE | shuffle { global: true seed: ", Below(9), " }");
    return kSources[Below(std::size(kSources))];
  }
  std::string CountingOp(uint64_t most) {
    const uint64_t count = Below(most);
    const uint64_t shards = 1 + Below(4);
    switch (Below(6)) {
      case 0:
        return absl::StrCat("take { count: ", count * 2, " }");
      case 1:
        return absl::StrCat("skip { count: ", count, " }");
      case 2:
        return absl::StrCat("shard { num_shards: ", shards, " index: ", Below(shards), " }");
      case 3:
        return "repeat {}";
      default:
        return absl::StrCat("repeat { count: ", Below(4), " }");
    }
  }
  std::string Chain(uint64_t most, int depth) {
    std::string text = Source();
    const bool numbers = text[0] == 'r';
    bool alone = true;  // a lone tensor
    for (uint64_t ops = Below(most + 1); ops > 0; --ops) {
      const uint64_t kind = Below(9);
      if (kind < 4) {
        absl::StrAppend(&text, " | ", CountingOp(60));
      } else if (kind < 7) {
        absl::StrAppend(&text, " | shuffle { buffer_size: ", 1 + Below(Below(4) == 0 ? 3000 : 50),
                        " seed: ", Below(99), " }");
      } else if (kind == 7 || depth == 2) {
        absl::StrAppend(&text, " | enumerate { start: ", Below(7), " }");
        alone = false;
      } else if (alone && Below(2) == 0) {
        const char* const other = numbers ? "range { stop: 9 } | shuffle { buffer_size: 4 seed: 1 }"
                                          : "$SHARDS | skip { count: 3 }";
        absl::StrAppend(&text, " | concatenate { (| ", other, " |) (| ", other,
                        " | repeat { count: 2 } |) }");
      } else {
        absl::StrAppend(&text, " | zip { (| ", Chain(3, depth + 1), " |) }");
        alone = false;
      }
    }
    return text;
  }

  std::mt19937_64 engine_;
};

TEST_CASE("Every op: chains that were drawn keep the contract too") {
  KeptFiles files;
  int with_batches = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    const std::string text = Dice(seed).Pipeline();
    INFO("seed " << seed << ": " << text);
    Contract contract(files.Spec(text));
    CHECK(contract.reference().status == absl::OkStatus());
    contract.CheckWorkers();
    contract.CheckDelays(seed);
    contract.CheckCursors(seed);
    with_batches += contract.reference().batches.size() > 2;
  }
  // A third. Another op among those that are drawn makes other chains, some of them shorter.
  CHECK(with_batches > 40);
}

// Behind damage nothing comes, and before it everything.
TEST_CASE("Errors come at their step, whatever the workers, and stay behind a resume") {
  KeptFiles files;
  files.DamageRecord("damaged.tfrecord", 60);
  files.WriteMixed("mixed.tfrecord", 30);
  struct Case {
    const char* text;
    size_t steps;  // before it
    const char* error;
  };
  const Case cases[] = {
      {"tfrecord { files: 'FOLDER/damaged.tfrecord' } | $PARSE | batch { batch_size: 8 }", 7,
       "damaged.tfrecord, record 60"},
      {"tfrecord { files: 'FOLDER/damaged.tfrecord' } | $PARSE | skip { count: 4 } | batch { "
       "batch_size: 8 } | repeat {}",
       7, "damaged.tfrecord, record 60"},
      {"$SHARDS | concatenate { (| tfrecord { files: 'FOLDER/damaged.tfrecord' } |) } | batch { "
       "batch_size: 10 }",
       12, "damaged.tfrecord, record 60"},
      {"tfrecord { files: 'FOLDER/mixed.tfrecord' } | $PARSE | batch { batch_size: 4 }", 7,
       "record 30"},
      // Of a shuffle's buffer goes out what is drawn without what failed, as in tf.data.
      {"tfrecord { files: 'FOLDER/damaged.tfrecord' } | shuffle { buffer_size: 10 seed: 1 } | "
       "$PARSE | batch { batch_size: 3 }",
       17, "damaged.tfrecord, record 60"},
      {"tfrecord { files: 'FOLDER/damaged.tfrecord' } | shuffle { buffer_size: 60 seed: 1 } | "
       "shuffle { buffer_size: 1 seed: 2 } | $PARSE | batch { batch_size: 1 }",
       1, "damaged.tfrecord, record 60"},
      {"tfrecord { files: 'FOLDER/damaged.tfrecord' } | shuffle { buffer_size: 61 seed: 1 } | "
       "$PARSE | batch { batch_size: 1 }",
       0, "damaged.tfrecord, record 60"},
      // In front of a cut: what comes before is handed on, and nothing behind it.
      {"tfrecord { files: 'FOLDER/mixed.tfrecord' } | $PARSE | filter { predicate: 'n % 2 == 0' } "
       "| "
       "batch { batch_size: 4 }",
       3, "record 30"},
      {"tfrecord { files: 'FOLDER/damaged.tfrecord' } | $PARSE | filter { predicate: 'n % 2 == 0' "
       "} | "
       "batch { batch_size: 4 }",
       7, "damaged.tfrecord, record 60"},
      {"tfrecord { files: 'FOLDER/mixed.tfrecord' } | $PARSE | batch { batch_size: 4 } | batch { "
       "batch_size: 2 }",
       3, "record 30"},
      {"tfrecord { files: 'FOLDER/mixed.tfrecord' } | $PARSE | ignore_errors { max_skipped: 0 } | "
       "batch "
       "{ batch_size: 4 }",
       7, "too many damaged places: 1 > 0 (max_skipped)"},
      {"tfrecord { files: 'FOLDER/mixed.tfrecord' } | $PARSE | ignore_errors { "
       "max_skipped_fraction: "
       "0.001 } | batch { batch_size: 4 }",
       24, "too large a part is damaged: 1 of 100"},
      // Both: the row that comes first in order is reported, not the one that is found first.
      {"tfrecord { files: 'FOLDER/mixed.tfrecord' } | zip { (| tfrecord { files: "
       "'FOLDER/damaged.tfrecord' } | $PARSE |) } "
       "| map { let: 'x = feature(\"1/n\")' out: 'x = x' } | batch { batch_size: 4 }",
       15, "damaged.tfrecord, record 60"},
  };
  for (const Case& c : cases) {
    INFO(c.text);
    Contract contract(files.Spec(c.text));
    INFO(contract.reference().status.ToString());
    CHECK(contract.reference().finished);
    CHECK(contract.reference().batches.size() == c.steps);
    CHECK(contract.reference().status.code() == absl::StatusCode::kDataLoss);
    CHECK(absl::StrContains(contract.reference().status.message(), c.error));
    contract.CheckWorkers();
    contract.CheckDelays(5);
    contract.CheckCursors(3);
  }
}

// Behind five elements comes what waits for no read and would take centuries: the front is at it
// when the run is stopped.
TEST_CASE("a front that works without reads can be stopped") {
  const std::string endless = "input { stage { range { stop: 4611686018427387904 } } } ";
  const auto plan =
      PlanText(absl::StrCat("stage { concatenate { input { stage { zip { ", endless, endless,
                            "} } stage { take { count: 5 } } } ", "input { stage { zip { ", endless,
                            endless, "} } stage { skip { count: 4000000000000000000 } } } } }"));
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  // With one slot, the last of the five have none yet when the front comes to what takes so long.
  for (const int slots : {2, 1}) {
    const RunResult result = RunPlan(*plan, {.workers = 2, .slots = slots, .max_steps = 5});
    CHECK(result.batches.size() == 5);
    CHECK_FALSE(result.finished);
  }
}

}  // namespace
}  // namespace penstock::test
