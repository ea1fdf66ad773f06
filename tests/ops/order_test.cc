// Source, shuffle, repeat, take, skip and batch: what leaves the pipeline, and in which order.
#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "server/engine/plan/cursor.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

constexpr char kParse[] = "stage { parse_example { feature { key: 'n' int64 {} } } } ";

std::vector<int64_t> Range(int64_t first, int64_t last) {
  std::vector<int64_t> values(last - first);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// Uneven shards, an empty one among them: 0–4 | (none) | 100 | 200–206 | 300–302.
struct Shards {
  Shards() {
    WriteShard(folder / "0.tfrecord", 0, 5);
    WriteShard(folder / "1.tfrecord", 0, 0);
    WriteShard(folder / "2.tfrecord", 100, 1);
    WriteShard(folder / "3.tfrecord", 200, 7);
    WriteShard(folder / "4.tfrecord", 300, 3);
  }
  std::string Source(const std::string& options = "") const {
    return absl::StrCat("stage { tfrecord { files: '", folder.path(), "/*.tfrecord' ", options,
                        " } } ", kParse);
  }
  ScratchFolder folder;
};

TEST_CASE("tfrecord reads its files one after another, in the byte order of their names") {
  Shards shards;
  std::vector<int64_t> expected = Range(0, 5);
  for (int64_t n : {100, 200, 201, 202, 203, 204, 205, 206, 300, 301, 302}) expected.push_back(n);
  RunResult result = RunText(shards.Source() + "stage { batch { batch_size: 4 } }");
  CHECK(result.finished);
  CHECK(result.status.ok());
  CHECK(Int64s(result) == expected);
  REQUIRE(result.batches.size() == 4);
  CHECK(result.batches[3].info.rows == 4);
}

TEST_CASE(
    "A list of files keeps its order, and what is not sorted means something else than it did") {
  Shards shards;
  const auto source = [&](const std::string& files) {
    return absl::StrCat("stage { name: 's' tfrecord { ", files, " } } ", kParse,
                        "stage { batch { batch_size: 4 } }");
  };
  const auto file = [&](const std::string& name) {
    return absl::StrCat("files: '", shards.folder / name, "' ");
  };
  const std::string turned = source(file("4.tfrecord") + file("0.tfrecord"));
  const RunResult result = RunText(turned);
  CHECK(Int64s(result) == std::vector<int64_t>{300, 301, 302, 0, 1, 2, 3, 4});
  // Those of one glob in the byte order of their names, wherever it stands.
  CHECK(Int64s(RunText(source(file("3.tfrecord") + file("[042].tfrecord")))) ==
        std::vector<int64_t>{200, 201, 202, 203, 204, 205, 206, 0, 1, 2, 3, 4, 100, 300, 301, 302});
  const std::string sorted = source(file("0.tfrecord") + file("4.tfrecord"));
  const auto meaning = [](const std::string& spec) {
    const auto plan = PlanText(spec);
    REQUIRE(plan.ok());
    return FingerprintOf(**plan)->meanings().stage(0).number();
  };
  CHECK(meaning(sorted) == 1);
  CHECK(meaning(turned) == 2);
  // A cursor of the release that sorted them.
  v1::Fingerprint older = *FingerprintOf(**PlanText(sorted));
  older.clear_meanings();
  Position position;
  position.Add(0);
  const std::string cursor = *CursorMaker(older).Make(1, position);
  const auto refused = ReadCursor(cursor, *FingerprintOf(**PlanText(turned))).status();
  CHECK(refused.code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(
      std::string(refused.message()),
      Catch::Contains("stage s: the op tfrecord means something else in this release (a list "
                      "of files keeps its order)"));
}

// Made by tests/golden/make_interleave_goldens.py with tf.data's interleave over the same shards.
struct InterleaveGolden {
  int cycle_length;
  int block_length;
  std::vector<int64_t> order;
};
const InterleaveGolden kInterleave[] = {
#include "tests/golden/interleave_orders.inc"
};

TEST_CASE("tfrecord with cycle_length has the order of tf.data's interleave") {
  Shards shards;
  for (const InterleaveGolden& golden : kInterleave) {
    INFO("cycle_length " << golden.cycle_length << ", block_length " << golden.block_length);
    RunResult result = RunText(shards.Source(absl::StrCat("cycle_length: ", golden.cycle_length,
                                                          " block_length: ", golden.block_length)) +
                               "stage { batch { batch_size: 3 } }");
    CHECK(Int64s(result) == golden.order);
  }
}

TEST_CASE("batch keeps or drops the rest, and a pipeline without batch hands out elements") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 10);
  const std::string source =
      absl::StrCat("stage { tfrecord { files: '", folder / "a", "' } } ", kParse);
  RunResult kept = RunText(source + "stage { batch { batch_size: 4 } }");
  REQUIRE(kept.batches.size() == 3);
  CHECK(kept.batches[2].info.rows == 2);
  CHECK(kept.batches[2].As<int64_t>(0) == std::vector<int64_t>{8, 9});
  RunResult dropped = RunText(source + "stage { batch { batch_size: 4 drop_remainder: true } }");
  CHECK(dropped.batches.size() == 2);
  CHECK(dropped.finished);
  RunResult single = RunText(source);
  REQUIRE(single.batches.size() == 10);
  CHECK(single.batches[3].As<int64_t>(0) == std::vector<int64_t>{3});
}

TEST_CASE("repeat, take and skip count elements before batch and batches after it") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 10);
  const std::string source =
      absl::StrCat("stage { tfrecord { files: '", folder / "a", "' } } ", kParse);
  struct Case {
    const char* ops;
    std::vector<int64_t> expected;
  };
  const Case cases[] = {
      {"stage { take { count: 3 } } stage { batch { batch_size: 2 } }", {0, 1, 2}},
      {"stage { skip { count: 7 } } stage { batch { batch_size: 2 } }", {7, 8, 9}},
      {"stage { skip { count: 11 } } stage { batch { batch_size: 2 } }", {}},
      {"stage { skip { count: -1 } } stage { batch { batch_size: 2 } }", {}},
      {"stage { take { count: 0 } } stage { batch { batch_size: 2 } }", {}},
      {"stage { batch { batch_size: 4 } } stage { take { count: 2 } }", {0, 1, 2, 3, 4, 5, 6, 7}},
      {"stage { batch { batch_size: 4 } } stage { skip { count: 2 } }", {8, 9}},
      {"stage { take { count: 2 } } stage { repeat { count: 3 } } stage { batch { batch_size: 4 } "
       "}",
       {0, 1, 0, 1, 0, 1}},
      {"stage { skip { count: 8 } } stage { repeat { count: 2 } } stage { batch { batch_size: 3 } "
       "}",
       {8, 9, 8, 9}},
      {"stage { take { count: 3 } } stage { batch { batch_size: 2 drop_remainder: true } } stage { "
       "repeat { count: 2 } }",
       {0, 1, 0, 1}},
      {"stage { repeat { count: 2 } } stage { skip { count: 9 } } stage { take { count: 3 } } "
       "stage { batch { batch_size: 8 } }",
       {9, 0, 1}},
      {"stage { repeat { count: 0 } } stage { batch { batch_size: 8 } }", {}},
      {"stage { take { count: 1 } } stage { repeat { count: 2 } } stage { repeat { count: 2 } } "
       "stage { batch { batch_size: 8 } }",
       {0, 0, 0, 0}},
      {"stage { take { count: 2 } } stage { repeat {} } stage { take { count: 5 } } stage { batch "
       "{ batch_size: 8 } }",
       {0, 1, 0, 1, 0}},
      {"stage { take { count: 0 } } stage { repeat {} } stage { batch { batch_size: 8 } }", {}},
      {"stage { prefetch { buffer_size: 3 } } stage { batch { batch_size: 16 } }",
       {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
  };
  for (const Case& c : cases) {
    INFO(c.ops);
    RunResult result = RunText(source + c.ops);
    CHECK(result.finished);
    CHECK(result.status.ok());
    CHECK(Int64s(result) == c.expected);
  }
}

TEST_CASE("shard leaves out many elements at once") {
  const auto elements = [](const std::string& ops) {
    return Int64s(RunText(absl::StrCat("stage { range { stop: 4611686018427387904 } } ", ops,
                                       " stage { take { count: 2 } } stage { batch { batch_size: "
                                       "2 } }")));
  };
  CHECK(elements("stage { shard { num_shards: 3 index: 1 } } stage { skip { count: "
                 "1000000000000000000 } }") ==
        std::vector<int64_t>{3000000000000000001, 3000000000000000004});
  // More than there are, and more than a number holds.
  CHECK(elements("stage { shard { num_shards: 3 index: 1 } } stage { skip { count: "
                 "9000000000000000000 } }")
            .empty());
  CHECK(elements("stage { shard { num_shards: 4000000000000000000 index: 7 } } stage { skip { "
                 "count: 1 } }") == std::vector<int64_t>{4000000000000000007});
  CHECK(elements("stage { skip { count: 5 } } stage { shard { num_shards: 2 } } stage { shard { "
                 "num_shards: 2 index: 1 } } stage { skip { count: 3 } }") ==
        std::vector<int64_t>{19, 23});
}

TEST_CASE("What leaves out elements refuses what is no number for it") {
  const std::pair<const char*, const char*> kCases[] = {
      {"take { count: -2 }", "stage take: count: expected -1 (all) or at least 0, found -2"},
      {"skip { count: -2 }", "stage skip: count: expected -1 (all) or at least 0, found -2"},
      {"shard {}", "stage shard: num_shards: expected at least 1, found 0"},
      {"shard { num_shards: -3 }", "stage shard: num_shards: expected at least 1, found -3"},
      {"shard { num_shards: 3 index: 3 }", "stage shard: index: expected 0 to 2, found 3"},
      {"shard { num_shards: 3 index: -1 }", "stage shard: index: expected 0 to 2, found -1"},
  };
  for (const auto& [stage, message] : kCases) {
    INFO(stage);
    const absl::Status status =
        PlanText(Stages(absl::StrCat("range { stop: 9 } | ", stage))).status();
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains(message));
  }
}

TEST_CASE("The epoch of a batch is that of its first row") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 5);
  const std::string source =
      absl::StrCat("stage { tfrecord { files: '", folder / "a", "' } } ", kParse);
  for (const char* ops : {"stage { batch { batch_size: 5 } } stage { repeat { count: 3 } }",
                          "stage { repeat { count: 3 } } stage { batch { batch_size: 5 } }"}) {
    RunResult result = RunText(source + ops);
    REQUIRE(result.batches.size() == 3);
    for (uint64_t i = 0; i < 3; ++i) CHECK(result.batches[i].info.epoch == i);
  }
  RunResult crossing = RunText(
      source + "stage { repeat {} } stage { batch { batch_size: 3 } } stage { take { count: 4 } }");
  std::vector<uint64_t> epochs;
  for (const Batch& batch : crossing.batches) epochs.push_back(batch.info.epoch);
  CHECK(epochs == std::vector<uint64_t>{0, 0, 1, 1});
}

std::vector<int64_t> Shuffled(const std::string& source, const std::string& shuffle,
                              const std::string& rest = "") {
  return Int64s(RunText(source + "stage { shuffle { " + shuffle + " } } " + rest +
                        "stage { batch { batch_size: 7 } }"));
}

TEST_CASE("shuffle is a permutation that moves no element forward by more than its buffer") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 500);
  const std::string source =
      absl::StrCat("stage { tfrecord { files: '", folder / "a", "' } } ", kParse);
  for (int buffer_size : {1, 2, 10, 499, 500, 501, 10000}) {
    const std::vector<int64_t> order =
        Shuffled(source, absl::StrCat("buffer_size: ", buffer_size, " seed: 5"));
    REQUIRE(order.size() == 500);
    CHECK(std::set<int64_t>(order.begin(), order.end()).size() == 500);
    for (size_t i = 0; i < order.size(); ++i)
      CHECK(order[i] < static_cast<int64_t>(i) + buffer_size);
    CHECK((order == Range(0, 500)) == (buffer_size == 1));
  }
}

TEST_CASE("shuffle with a full buffer puts each element anywhere equally often") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 8);
  const std::string source =
      absl::StrCat("stage { tfrecord { files: '", folder / "a", "' } } ", kParse);
  RunOptions options;
  options.max_steps = 4000;
  RunResult result = RunText(source +
                                 "stage { shuffle { buffer_size: 8 seed: 1 } } stage { repeat {} } "
                                 "stage { batch { batch_size: 8 } }",
                             options);
  std::vector<std::vector<int>> counts(8, std::vector<int>(8));
  for (const Batch& batch : result.batches) {
    const std::vector<int64_t> row = batch.As<int64_t>(0);
    for (size_t place = 0; place < 8; ++place) ++counts[row[place]][place];
  }
  // Binomial with n = 4000, p = 1/8: sigma is 21; 5 sigma over 64 cells.
  for (const std::vector<int>& row : counts) {
    for (int count : row) CHECK(std::abs(count - 500) < 105);
  }
}

TEST_CASE("shuffle draws by seed, stage name and epoch") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 50);
  const std::string source =
      absl::StrCat("stage { tfrecord { files: '", folder / "a", "' } } ", kParse);
  const std::vector<int64_t> first = Shuffled(source, "buffer_size: 50 seed: 3");
  CHECK(first == Shuffled(source, "buffer_size: 50 seed: 3"));
  CHECK(first != Shuffled(source, "buffer_size: 50 seed: 4"));
  const std::vector<int64_t> twice =
      Shuffled(source, "buffer_size: 50 seed: 3", "stage { repeat { count: 2 } } ");
  REQUIRE(twice.size() == 100);
  CHECK(std::vector<int64_t>(twice.begin(), twice.begin() + 50) == first);
  CHECK(std::vector<int64_t>(twice.begin() + 50, twice.end()) != first);
  const std::string stage =
      " shuffle { buffer_size: 50 seed: 3 } } stage { batch { batch_size: 50 } }";
  CHECK(Int64s(RunText(source + "stage { name: 'shuffle'" + stage)) == first);
  CHECK(Int64s(RunText(source + "stage { name: 'other'" + stage)) != first);
  const std::vector<int64_t> same =
      Shuffled(source, "buffer_size: 50 seed: 3 reshuffle_each_iteration: false",
               "stage { repeat { count: 2 } } ");
  CHECK(std::equal(same.begin(), same.begin() + 50, same.begin() + 50));
}

TEST_CASE("Shuffles of one draw_name and seed draw alike") {
  // Twice the same numbers, side by side.
  const auto rows = [](const std::string& op, const std::string& draw_name) {
    const std::string input =
        absl::StrCat("input { stage { range { stop: 40 } } stage { ", draw_name, " ", op, " } } ");
    return RunText(
        absl::StrCat("stage { zip { ", input, input, "} } ",
                     "stage { batch { batch_size: 40 } } stage { repeat { count: 2 } }"));
  };
  for (const std::string op :
       {"shuffle { buffer_size: 7 seed: 3 }", "shuffle { buffer_size: 40 seed: 3 }"}) {
    INFO(op);
    const RunResult alike = rows(op, "draw_name: 'pairs'");
    CHECK(Int64s(alike, 0) == Int64s(alike, 1));
    const RunResult apart = rows(op, "");
    CHECK(Int64s(apart, 0) != Int64s(apart, 1));
  }
  const absl::Status refused =
      PlanText(
          "stage { range { stop: 4 } } stage { draw_name: 'a' take { count: 2 } } "
          "stage { batch { batch_size: 1 } }")
          .status();
  CHECK(refused == absl::InvalidArgumentError(
                       "stage take: draw_name is for ops with a seed, which take has not"));
}

TEST_CASE("Each pass of a repeat inside a repeat is shuffled anew") {
  const std::vector<int64_t> all = Int64s(RunText(
      "stage { range { stop: 30 } } stage { shuffle { buffer_size: 30 seed: 3 } } stage { repeat { "
      "count: 2 } } stage { repeat { count: 3 } } stage { batch { batch_size: 30 } }"));
  REQUIRE(all.size() == 6 * 30);
  std::set<std::vector<int64_t>> passes;
  for (int pass = 0; pass < 6; ++pass)
    passes.emplace(all.begin() + 30 * pass, all.begin() + 30 * (pass + 1));
  CHECK(passes.size() == 6);
}

TEST_CASE("Behind the last pass of a repeat there is nothing, however much is left out") {
  for (const int skipped : {0, 4, 5, 9, 10, 11, 15, 100}) {
    INFO(skipped);
    const RunResult result = RunText(
        absl::StrCat("stage { range { stop: 5 } } stage { repeat { count: 2 } } stage { skip { "
                     "count: ",
                     skipped, " } } stage { batch { batch_size: 3 } }"),
        {.max_steps = 9});
    CHECK(result.finished);
    CHECK(Int64s(result).size() == static_cast<size_t>(std::max(0, 10 - skipped)));
  }
}

TEST_CASE("A missing seed is drawn when the plan is made and stands in its spec") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 50);
  const std::string spec =
      absl::StrCat("stage { tfrecord { files: '", folder / "a", "' } } ", kParse,
                   "stage { shuffle { buffer_size: 50 } } stage { batch { batch_size: 50 } }");
  auto plan = PlanText(spec);
  REQUIRE(plan.ok());
  CHECK((*plan)->spec().stage(2).shuffle().has_seed());
  auto other = PlanText(spec);
  CHECK((*plan)->spec().stage(2).shuffle().seed() != (*other)->spec().stage(2).shuffle().seed());
  auto again = MakePlan((*plan)->spec(), LocalFileSystem());
  REQUIRE(again.ok());
  CHECK(Int64s(RunPlan(*plan)) == Int64s(RunPlan(*again)));
}

}  // namespace
}  // namespace penstock::test
