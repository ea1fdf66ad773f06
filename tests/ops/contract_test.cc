// The contract of every op, over a table of pipelines (contract_pipelines.h): the same bytes whatever the workers and delays; a cursor of any step goes on
// with the same tail; the end and errors come in order and stay. (What cursors refuse: cursor_test.cc.)
#include <algorithm>
#include <iterator>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "penstock/v1/ops.pb.h"
#include "server/engine/plan/cursor.h"
#include "tests/ops/contract_files.h"
#include "tests/ops/contract_pipelines.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/shuffled_reads.h"

namespace penstock::test {
namespace {

constexpr uint64_t kMaxSteps = 45;  // of pipelines without end

// Where the two differ first, in words; "" where they are equal.
std::string Difference(const RunResult& found, const RunResult& expected, size_t first) {
  const size_t count = expected.batches.size() - first;
  for (size_t i = 0; i < std::min(found.batches.size(), count); ++i) {
    const Batch& a = found.batches[i];
    const Batch& b = expected.batches[first + i];
    const std::string where = absl::StrCat("batch ", i, " (step ", b.info.step, "): ");
    if (a.info.step != b.info.step) return absl::StrCat(where, "its step is ", a.info.step);
    if (a.info.rows != b.info.rows)
      return absl::StrCat(where, "rows ", a.info.rows, ", not ", b.info.rows);
    if (a.info.epoch != b.info.epoch)
      return absl::StrCat(where, "epoch ", a.info.epoch, ", not ", b.info.epoch);
    for (size_t t = 0; t < b.tensors.size(); ++t) {
      if (a.tensors[t] != b.tensors[t])
        return absl::StrCat(where, "tensor ", t, " has other bytes");
    }
    if (WithoutCounts(a.info.cursor) != WithoutCounts(b.info.cursor))
      return absl::StrCat(where, "another cursor");
  }
  if (found.batches.size() != count)
    return absl::StrCat(found.batches.size(), " batches, not ", count);
  if (found.finished != expected.finished) return expected.finished ? "no end" : "an end";
  if (found.status != expected.status)
    return absl::StrCat("status ", found.status.ToString(), ", not ", expected.status.ToString());
  return "";
}

// Whether a stream ends just behind the last step that is asked for is a matter of time.
RunResult Run(std::shared_ptr<const Plan> plan, const RunOptions& options) {
  RunResult result = RunPlan(std::move(plan), options);
  if (result.batches.size() == options.max_steps) {
    result.finished = false;
    result.status = absl::OkStatus();
  }
  return result;
}

// With elements that `save` has written.
struct KeptFiles : ContractFiles {
  KeptFiles() {
    const RunResult saved = RunText(
        Spec("$RANGE | shuffle { buffer_size: 50 seed: 6 } | map { out: 'a = value' out: 'b "
             "= random_uniform([3], seed=1) + value' } | save { path: 'FOLDER/saved' } | batch { "
             "batch_size: "
             "50 }"));
    REQUIRE(saved.status.ok());
  }
};

class Contract {
 public:
  explicit Contract(const std::string& spec) : spec_(spec), plan_(MustPlan(LocalFileSystem())) {
    reference_ = Run(plan_, {.workers = 1, .max_steps = kMaxSteps});
  }

  const RunResult& reference() const { return reference_; }

  void CheckWorkers() {
    for (const int workers : {2, 8}) {
      INFO(workers << " workers");
      CHECK(Difference(Run(plan_, {.workers = workers, .slots = workers, .max_steps = kMaxSteps}),
                       reference_, 0) == "");
    }
  }

  void CheckDelays(uint64_t seed) {
    for (const int workers : {1, 3, 8}) {
      INFO(workers << " workers, delays of seed " << seed);
      ShuffledReads reads(seed + workers);
      CHECK(Difference(Run(MustPlan(reads), {.workers = workers, .max_steps = kMaxSteps}),
                       reference_, 0) == "");
    }
  }

  void CheckCursors(uint64_t seed) {
    std::mt19937_64 dice(seed);
    const size_t count = reference_.batches.size();
    if (count == 0) return;
    std::vector<size_t> steps = {0, std::min<size_t>(1, count - 1), dice() % count, count / 2,
                                 count - 1};
    std::sort(steps.begin(), steps.end());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    for (const size_t step : steps) {
      const std::string& cursor = reference_.batches[step].info.cursor;
      CHECK(cursor.size() <= kMaxCursorBytes);
      const int workers = 1 + static_cast<int>(dice() % 4);
      INFO("cursor of step " << step << ", " << workers << " workers");
      const RunResult tail = Resume(plan_, cursor, step, workers);
      CHECK(Difference(tail, reference_, step + 1) == "");
      if (tail.batches.empty()) continue;
      // Once more, from a cursor of the resumed run.
      const size_t later = dice() % tail.batches.size();
      INFO("and of step " << step + 1 + later);
      ShuffledReads reads(dice());
      CHECK(
          Difference(Resume(MustPlan(reads), tail.batches[later].info.cursor, step + 1 + later, 3),
                     reference_, step + 2 + later) == "");
    }
  }

  void CheckStop() {
    ShuffledReads reads(1);
    for (const uint64_t steps : {uint64_t{0}, uint64_t{1}, reference_.batches.size() / 2}) {
      for (const int workers : {1, 4}) {
        INFO("stopped behind " << steps << " steps, " << workers << " workers");
        const RunResult result =
            Run(MustPlan(reads), {.workers = workers, .slots = 2, .max_steps = steps});
        CHECK(result.batches.size() == std::min<uint64_t>(steps, reference_.batches.size()));
      }
    }
  }

 private:
  std::shared_ptr<const Plan> MustPlan(FileSystem& files) const {
    auto plan = PlanText(spec_, files);
    INFO(plan.status().ToString());
    REQUIRE(plan.ok());
    return *plan;
  }

  RunResult Resume(std::shared_ptr<const Plan> plan, const std::string& cursor, size_t step,
                   int workers) const {
    RunOptions options{
        .workers = workers, .slots = 1 + workers, .max_steps = kMaxSteps, .cursor = cursor};
    // A stream that was cut off is cut off at the same place.
    if (!reference_.finished) options.max_steps = reference_.batches.size() - step - 1;
    return Run(std::move(plan), options);
  }

  const std::string spec_;
  const std::shared_ptr<const Plan> plan_;
  RunResult reference_;
};

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
    CAPTURE(name);
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
  CHECK(with_batches > 50);
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

// Behind five elements comes what waits for no read and would take centuries: the front is at it when the run is stopped.
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
