// Hosts in step: whatever their number, their rows together are the batches of one host, and their
// cursors its own.
#include "server/engine/tensor/world.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/memory_account.h"
#include "google/protobuf/text_format.h"
#include "server/engine/plan/cursor.h"
#include "server/engine/run/step_count.h"
#include "tests/hosts/joined_hosts.h"
#include "tests/ops/contract_files.h"
#include "tests/ops/contract_pipelines.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"

namespace penstock::test {
namespace {

constexpr uint64_t kMostSteps = 30;
using SharedPlan = std::shared_ptr<const Plan>;

// With elements that `save` has written.
struct WorldFiles : ContractFiles {
  WorldFiles() {
    const RunResult saved = RunText(
        Spec("$RANGE | shuffle { buffer_size: 50 seed: 6 } | map { out: 'a = value' out: 'b "
             "= random_uniform([3], seed=1) + value' } | save { path: 'FOLDER/saved' } | batch { "
             "batch_size: 50 }"));
    REQUIRE(saved.status.ok());
  }
};

absl::StatusOr<SharedPlan> PlanFor(const std::string& text, World world) {
  v1::PipelineSpec spec;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return MakePlan(spec, LocalFileSystem(), world);
}

SharedPlan MustPlan(const std::string& text, World world = {}) {
  absl::StatusOr<SharedPlan> plan = PlanFor(text, world);
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  return *plan;
}

// What all hosts of a world make behind a cursor.
std::vector<RunResult> RunHosts(const std::string& text, uint32_t hosts,
                                const std::string& cursor = "", uint64_t steps = kMostSteps) {
  std::vector<RunResult> all;
  for (uint32_t host = 0; host < hosts; ++host) {
    all.push_back(
        RunPlan(MustPlan(text, {hosts, host}),
                {.workers = 1 + static_cast<int>(host % 3), .max_steps = steps, .cursor = cursor}));
  }
  return all;
}

// Where they differ first from the steps of one host from `first` on.
std::string Difference(const std::string& text, const std::vector<RunResult>& hosts,
                       const RunResult& whole, size_t first, size_t steps) {
  const SharedPlan plan = MustPlan(text);
  const size_t count = std::min(steps, whole.batches.size() - first);
  size_t fewest = SIZE_MAX;
  for (size_t host = 0; host < hosts.size(); ++host) {
    const size_t made = hosts[host].batches.size();
    fewest = std::min(fewest, made);
    // A row that fails is that of one host.
    if (made != count && (whole.status.ok() || made < count))
      return absl::StrCat("host ", host, " has ", made, " steps, not ", count, ": ",
                          hosts[host].status.ToString());
  }
  if (fewest != count) return "no host fails where one alone does";
  for (size_t i = 0; i < count; ++i) {
    std::vector<const Batch*> parts;
    for (const RunResult& host : hosts) parts.push_back(&host.batches[i]);
    const std::string wrong = JoinedDifference(plan->tensors(), parts, whole.batches[first + i]);
    if (!wrong.empty()) return absl::StrCat("step ", first + i, ": ", wrong);
  }
  return "";
}

// Also of those whose last batch is short, padded to what its rows need, ragged or sparse.
constexpr const char* kFurther[] = {
    "range { stop: 19 } | batch { batch_size: 8 remainder: PAD } | repeat { count: 2 }",
    "range { stop: 19 } | batch { batch_size: 8 remainder: WRAP } | repeat { count: 3 }",
    "range { stop: 15 } | batch { batch_size: 8 } | repeat { count: 2 }",
    "range { stop: 17 } | batch { batch_size: 16 } | repeat { count: 3 }",
    "range { stop: 17 } | batch { batch_size: 16 remainder: PAD } | repeat { count: 3 }",
    "$LISTS | padded_batch { batch_size: 13 } | repeat { count: 2 }",
    "$LISTS | padded_batch { batch_size: 13 remainder: PAD } | repeat { count: 2 }",
    "$LISTS | padded_batch { batch_size: 13 remainder: WRAP } | repeat { count: 2 }",
    "$LISTS | shuffle { buffer_size: 30 seed: 1 } | ragged_batch { batch_size: 11 } | repeat { "
    "count: 2 }",
    "$LISTS | map { out: 'a = ints' } | sparse_batch { batch_size: 11 row_shape: -1 } | repeat { "
    "count: 2 }",
    "$LISTS | map { out: 'w = words' } | sparse_batch { batch_size: 11 row_shape: -1 }",
    "$LISTS | pack { sequence_length: 9 tokens: 'ints' cu_seqlens: true loss_mask: true window: 20 "
    "} "
    "| ragged_batch { batch_size: 8 } | repeat { count: 2 }",
    "$LISTS | pack { sequence_length: 9 tokens: 'ints' cu_seqlens: true window: 20 } | "
    "padded_batch "
    "{ batch_size: 8 } | repeat { count: 2 }",
    "$LATE | shuffle { global: true seed: 1 } | $PARSE | batch { batch_size: 8 } | repeat { count: "
    "2 }",
    "$GZIP | $PARSE | filter { predicate: 'n % 3 != 0' } | shuffle { buffer_size: 20 seed: 2 } | "
    "batch { batch_size: 9 } | repeat { count: 2 }",
    "$MIXED | $PARSE | ignore_errors {} | batch { batch_size: 9 } | repeat { count: 2 }",
    "$RANGE | batch { batch_size: 10 } | map { out: 'm = value - mean(float32(value))' } | unbatch "
    "{} | batch { batch_size: 10 }",
};

// Whose steps are whole batches: made by a function of them, or shuffled, kept or repeated.
constexpr const char* kWholeBatches[] = {
    "$RANGE | batch { batch_size: 10 } | map { out: 'm = value - mean(float32(value))' out: 'mean "
    "= mean(float32(value))' } | repeat { count: 2 }",
    "$RANGE | batch { batch_size: 9 drop_remainder: true } | map { out: 'm = value - "
    "mean(float32(value))' out: 'three = [1, 2, 3] * sum(value)' } | repeat { count: 2 }",
    "$RANGE | batch { batch_size: 9 remainder: PAD } | shuffle { buffer_size: 4 seed: 1 } | map { "
    "out: 's = as_string(value - sum(value))' } | repeat { count: 2 }",
    "$RANGE | batch { batch_size: 9 remainder: WRAP } | shuffle { buffer_size: 4 seed: 1 } | "
    "repeat { count: 3 } | take { count: 25 }",
    "$SHARDS | $PARSE | batch { batch_size: 16 } | shuffle { buffer_size: 3 seed: 2 }",
    "$LISTS | padded_batch { batch_size: 13 } | shuffle { buffer_size: 3 seed: 1 } | repeat { "
    "count: 2 }",
    "$LISTS | padded_batch { batch_size: 13 } | map { out: 'i = ints + sum(ints)' out: 'w = words' "
    "} | repeat { count: 2 }",
    "$LISTS | ragged_batch { batch_size: 11 } | shuffle { buffer_size: 3 seed: 1 } | repeat { "
    "count: 2 }",
    "$LISTS | map { out: 'a = ints' } | sparse_batch { batch_size: 11 row_shape: -1 } | shuffle { "
    "buffer_size: 3 seed: 1 }",
    "$LISTS | map { out: 'w = words' } | sparse_batch { batch_size: 11 row_shape: -1 } | shuffle { "
    "buffer_size: 3 seed: 1 }",
};

std::vector<std::string> AllPipelines() {
  std::vector<std::string> all(std::begin(kContractPipelines), std::end(kContractPipelines));
  all.insert(all.end(), std::begin(kFurther), std::end(kFurther));
  all.insert(all.end(), std::begin(kWholeBatches), std::end(kWholeBatches));
  return all;
}

TEST_CASE("the rows of any number of hosts are the batches of one, and their cursors too") {
  WorldFiles files;
  int divided = 0, whole_batches = 0;
  for (const std::string& text : AllPipelines()) {
    INFO(text);
    const std::string spec = files.Spec(text);
    const SharedPlan plan = MustPlan(spec);
    const RunResult whole = RunPlan(plan, {.workers = 2, .max_steps = kMostSteps});
    const bool is_batch = !plan->tensors().empty() && plan->tensors()[0].batched;
    for (const uint32_t hosts : {1, 2, 3, 5, 8}) {
      INFO(hosts << " hosts");
      const absl::Status refused = PlanFor(spec, {hosts, 0}).status();
      if (is_batch) CHECK(refused.ok() == (plan->batch_rows() >= hosts));
      if (!refused.ok()) {
        CHECK(refused.code() == absl::StatusCode::kInvalidArgument);
        CHECK(absl::StrContains(refused.message(), "world: "));
        continue;
      }
      divided += hosts > 1;
      whole_batches += hosts > 1 && !is_batch;
      CHECK(Difference(spec, RunHosts(spec, hosts), whole, 0, kMostSteps) == "");
    }
  }
  CHECK(divided > 300);
  CHECK(whole_batches > 50);
}

TEST_CASE(
    "of a whole batch features without its rows come whole, and those of a short last one are "
    "divided anew") {
  const std::string spec = Stages(
      "range { stop: 15 } | batch { batch_size: 8 } | map { out: 'm = value - sum(value)' out: "
      "'sum = sum(value)' out: 'pair = [1, 7] * sum(value)' }");
  for (const uint32_t host : {0, 1, 2, 3, 4}) {
    INFO("host " << host);
    const SharedPlan plan = MustPlan(spec, {5, host});
    CHECK(plan->element()[0].type.shape == Shape{kUnknownSize});
    CHECK(plan->element()[1].type.shape.empty());
    CHECK(plan->element()[2].type.shape == Shape{2});
    const RunResult result = RunPlan(plan);
    REQUIRE(result.batches.size() == 2);
    for (size_t step : {0, 1}) {
      const auto rows = static_cast<int64_t>(World{5, host}.RowsOf(step == 0 ? 8 : 7).count);
      CHECK(Numbers(result.batches[step].parts[0][1])[0] == rows);
      CHECK(Numbers(result.batches[step].parts[1][0])[0] == (step == 0 ? 28 : 77));
      CHECK(Numbers(result.batches[step].parts[2][0]) ==
            std::vector<int64_t>{step == 0 ? 28 : 77, step == 0 ? 196 : 539});
    }
  }
  const std::string scalars =
      Stages("range { stop: 15 } | batch { batch_size: 8 } | map { out: 'sum = sum(value)' }");
  CHECK(absl::StrContains(PlanFor(scalars, {2, 0}).status().message(),
                          "a function has left none of a batch's rows"));
  CHECK(absl::StrContains(PlanFor(spec, {9, 0}).status().message(),
                          "9 hosts divide batches of 8 rows"));
}

TEST_CASE("a cursor of any host goes on in a world of any other size") {
  WorldFiles files;
  std::mt19937_64 dice(48);
  for (const std::string& text : AllPipelines()) {
    INFO(text);
    const std::string spec = files.Spec(text);
    const SharedPlan plan = MustPlan(spec);
    if (!PlanFor(spec, {3, 0}).ok()) continue;
    const RunResult whole = RunPlan(plan, {.workers = 2, .max_steps = kMostSteps});
    if (whole.batches.size() < 2) continue;
    uint32_t most = 8;
    while (!PlanFor(spec, {most, 0}).ok()) --most;
    const auto hosts = static_cast<uint32_t>(2 + dice() % (most - 1));
    const auto others = static_cast<uint32_t>(1 + dice() % most);
    const size_t step = dice() % (whole.batches.size() - 1);
    INFO(hosts << " hosts up to step " << step << ", then " << others);
    const RunResult one = RunPlan(MustPlan(spec, {hosts, static_cast<uint32_t>(dice() % hosts)}),
                                  {.workers = 2, .max_steps = step + 1});
    REQUIRE(one.batches.size() == step + 1);
    const uint64_t left = whole.batches.size() - step - 1;
    CHECK(Difference(spec, RunHosts(spec, others, one.batches[step].info.cursor, left), whole,
                     step + 1, left) == "");
  }
}

TEST_CASE("ten changes of the number of hosts in one epoch leave its bytes as they are") {
  WorldFiles files;
  std::mt19937_64 dice(2);
  for (const char* const text :
       {"$WIDE | shuffle { buffer_size: 900 seed: 3 } | $PARSE | batch { batch_size: 60 }",
        "$WIDE | shuffle { global: true seed: 3 } | $PARSE | batch { batch_size: 60 }",
        "$WIDE | $PARSE | filter { predicate: 'n % 2 == 0' } | shuffle { buffer_size: 90 seed: 3 } "
        "| "
        "batch { batch_size: 30 }"}) {
    INFO(text);
    const std::string spec = files.Spec(text);
    const RunResult whole = RunText(spec);
    REQUIRE(whole.batches.size() > 200);
    std::vector<size_t> ends;
    while (ends.size() < 10) ends.push_back(1 + dice() % (whole.batches.size() - 2));
    ends.push_back(whole.batches.size());
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    std::string cursor;
    size_t first = 0;
    for (const size_t end : ends) {
      const auto hosts = static_cast<uint32_t>(1 + dice() % 9);
      INFO("steps " << first << " to " << end << " by " << hosts << " hosts");
      const std::vector<RunResult> parts = RunHosts(spec, hosts, cursor, end - first);
      CHECK(Difference(spec, parts, whole, first, end - first) == "");
      cursor = parts[dice() % hosts].batches.back().info.cursor;
      CHECK(cursor.size() <= 150);
      first = end;
    }
  }
}

TEST_CASE("a host reads its own rows where an index, or a length, says where they are") {
  ScratchFolder folder;
  constexpr int64_t kRecords = 256;
  WriteShard(folder / "large.tfrecord", 0, kRecords, 64 << 10);
  const double bytes = static_cast<double>(ReadFile(folder / "large.tfrecord").size());
  for (const char* const order :
       {"", "shuffle { buffer_size: 40 seed: 1 } | ", "shuffle { global: true seed: 1 } | "}) {
    INFO(order);
    const std::string spec =
        absl::StrReplaceAll(Stages(absl::StrCat("tfrecord { files: 'FOLDER/large.tfrecord' } | ",
                                                order, "batch { batch_size: 32 }")),
                            {{"FOLDER", folder.path()}});
    for (const uint32_t host : {0, 3, 7}) {
      const RunResult result = RunPlan(MustPlan(spec, {8, host}), {.maps = nullptr});
      CHECK(result.batches.size() == kRecords / 32);
      CHECK(static_cast<double>(result.stats.bytes_read) >= bytes / 8);
      CHECK(static_cast<double>(result.stats.bytes_read) <= 1.1 * bytes / 8);
    }
  }
}

TEST_CASE("of small records in memory a host looks at the headers of all and at its own data") {
  ScratchFolder folder;
  constexpr int64_t kRecords = 16384;
  WriteShard(folder / "small.tfrecord", 0, kRecords, 256);
  const double bytes = static_cast<double>(ReadFile(folder / "small.tfrecord").size());
  for (const char* const order : {"", "shuffle { buffer_size: 900 seed: 1 } | "}) {
    INFO(order);
    const std::string spec = absl::StrReplaceAll(
        Stages(absl::StrCat("tfrecord { files: 'FOLDER/small.tfrecord' } | ", order,
                            "batch { batch_size: 64 } | repeat { count: 2 }")),
        {{"FOLDER", folder.path()}});
    const RunResult whole = RunPlan(MustPlan(spec));
    std::vector<RunResult> hosts;
    for (uint32_t host = 0; host < 8; ++host) {
      hosts.push_back(RunPlan(MustPlan(spec, {8, host}), {.workers = 2}));
      // Of two passes; what is read before there is a map of the file is read whole.
      const double read = static_cast<double>(hosts.back().stats.bytes_read) / (2 * bytes);
      CHECK(read >= 1.0 / 8);
      CHECK(read <= 1.6 / 8);
    }
    CHECK(Difference(spec, hosts, whole, 0, 2 * kRecords / 64) == "");
  }
}

// Where the frame of that record begins in a file of TFRecords.
size_t FrameOf(const std::string& path, int64_t record) {
  const std::string bytes = ReadFile(path);
  size_t offset = 0;
  while (record-- > 0) {
    uint64_t length = 0;
    std::memcpy(&length, &bytes[offset], sizeof(length));
    offset += length + 16;
  }
  return offset;
}

TEST_CASE(
    "damaged data of a small record is found by the host that computes it, and a damaged header by "
    "all") {
  ScratchFolder folder;
  const std::string path = folder / "hurt.tfrecord";
  const std::string spec = absl::StrReplaceAll(
      Stages("tfrecord { files: 'FOLDER/hurt.tfrecord' } | shuffle { buffer_size: 100 seed: 1 } | "
             "batch { batch_size: 64 }"),
      {{"FOLDER", folder.path()}});
  constexpr int64_t kRecords = 4096, kHurt = 2100;
  for (const bool is_mapped : {true, false}) {
    INFO((is_mapped ? "out of a map" : "read"));
    WriteShard(path, 0, kRecords, 256);
    const size_t frame = FrameOf(path, kHurt);
    const RunResult whole = RunPlan(MustPlan(spec));
    REQUIRE(whole.batches.size() == kRecords / 64);
    FlipBit(path, frame + 100);
    std::vector<size_t> steps;
    for (uint32_t host = 0; host < 4; ++host) {
      RunOptions options{.workers = 2};
      if (!is_mapped) options.maps = nullptr;
      const RunResult result = RunPlan(MustPlan(spec, {4, host}), options);
      steps.push_back(result.batches.size());
      if (result.status.ok()) continue;
      CHECK(result.status.code() == absl::StatusCode::kDataLoss);
      INFO(result.status.message());
      CHECK(absl::StrContains(result.status.message(), absl::StrCat("record ", kHurt)));
      CHECK(absl::StrContains(result.status.message(), absl::StrCat("offset ", frame)));
      // At its own step, neither where it was read nor at the end.
      CHECK(steps.back() > (kHurt - 100) / 64 - 1);
      CHECK(steps.back() < kRecords / 64);
    }
    CHECK(std::count(steps.begin(), steps.end(), kRecords / 64) == 3);
    FlipBit(path, frame);
    for (uint32_t host = 0; host < 4; ++host) {
      const RunResult result = RunPlan(MustPlan(spec, {4, host}));
      CHECK(result.status.code() == absl::StatusCode::kDataLoss);
      CHECK(result.batches.size() < kRecords / 64);
    }
  }
}

TEST_CASE("steps are counted alike on all hosts, whatever becomes of the last batch") {
  for (const char* const remainder : {"KEEP", "DROP", "PAD", "WRAP"}) {
    const std::string spec =
        Stages(absl::StrCat("range { stop: 19 } | batch { batch_size: 8 remainder: ", remainder,
                            " } | repeat { count: 3 }"));
    const StepCount whole = CountSteps(*MustPlan(spec));
    for (const uint32_t hosts : {2, 3, 5, 8}) {
      for (uint32_t host = 0; host < hosts; ++host)
        CHECK(CountSteps(*MustPlan(spec, {hosts, host})).steps == whole.steps);
    }
  }
}

TEST_CASE(
    "the rows of a short last batch are divided anew, and those that are none have their places") {
  const std::string kept = Stages("range { stop: 10 } | batch { batch_size: 8 }");
  const std::string padded = Stages("range { stop: 10 } | batch { batch_size: 8 remainder: PAD }");
  // The last batch has two rows: of four hosts the second and the fourth have one of them.
  for (const uint32_t host : {0, 1, 2, 3}) {
    INFO("host " << host);
    const RunResult keep = RunPlan(MustPlan(kept, {4, host}));
    REQUIRE(keep.batches.size() == 2);
    CHECK(keep.batches[0].info.rows == 2);
    CHECK(keep.batches[1].info.rows == host % 2);
    CHECK(keep.batches[1].info.shape_rows == host % 2);
    const RunResult pad = RunPlan(MustPlan(padded, {4, host}));
    REQUIRE(pad.batches.size() == 2);
    CHECK(pad.batches[1].info.rows == (host == 0 ? 2 : 0));
    CHECK(pad.batches[1].info.shape_rows == 2);
  }
}

TEST_CASE("a row that fails names itself by its place in the whole batch, or by its record") {
  WorldFiles files;
  files.WriteMixed("failing.tfrecord", 30);
  const std::string spec = files.Spec(
      "tfrecord { files: 'FOLDER/failing.tfrecord' } | $PARSE | batch { batch_size: 20 }");
  const RunResult own = RunPlan(MustPlan(spec, {4, 2}));
  CHECK(own.status.code() == absl::StatusCode::kDataLoss);
  CHECK(absl::StrContains(own.status.message(), "record 30"));
  CHECK(own.batches.size() == 1);
  // It is not another host's to compute.
  CHECK(RunPlan(MustPlan(spec, {4, 1})).status.ok());

  std::string doubled = "let: 's0 = as_string(value)' ";
  for (int i = 0; i < 40; ++i)
    absl::StrAppend(&doubled, "let: 's", i + 1, " = s", i, " + s", i, "' ");
  constexpr uint64_t kMost = uint64_t{16} << 20;
  const auto account = MemoryAccount::Create(
      {.name = "pipeline p", .bytes_max = kMost, .limit = "the limit", .memory_bytes = 4 * kMost});
  const MemoryAccount::Scope charged(account.get());
  const RunResult of_none = RunPlan(
      MustPlan(Stages(absl::StrCat("range { stop: 8 } | map { ", doubled,
                                   "out: 'l = string_length(s40)' } | batch { batch_size: 8 }")),
               {4, 2}));
  INFO(of_none.status.ToString());
  CHECK(absl::EndsWith(of_none.status.message(), "(row 4 of step 0)"));
}

TEST_CASE("numbers that are no world are refused, with what there may be") {
  const std::string spec = Stages("range { stop: 10 } | batch { batch_size: 8 }");
  const auto refusal = [&](World world) {
    const absl::Status status = PlanFor(spec, world).status();
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  CHECK(refusal({0, 0}) == "world: expected 1 to 65536 hosts, found 0");
  CHECK(refusal({1 << 17, 0}) == "world: expected 1 to 65536 hosts, found 131072");
  CHECK(refusal({3, 3}) == "world: of 3 hosts the numbers are 0 to 2, found host 3");
  CHECK(absl::StrContains(refusal({9, 0}), "9 hosts divide batches of 8 rows"));
  const absl::Status no_batch =
      PlanFor(Stages("range { stop: 10 } | batch { batch_size: 5 } | filter { predicate: "
                     "'sum(value) > 3' }"),
              {2, 0})
          .status();
  CHECK(absl::StrContains(no_batch.message(), "put batch, or unbatch and batch, behind it"));
}

TEST_CASE("an explanation says what the hosts of a world compute and read of each other's rows") {
  WorldFiles files;
  const auto explained = [&](const char* text) {
    return MustPlan(files.Spec(text), {3, 1})->Explain();
  };
  CHECK(absl::StrContains(explained("$SHARDS | $PARSE | batch { batch_size: 16 }"),
                          "world: host 1 of 3, rows 5 to 9 of 16"));
  CHECK(
      absl::StrContains(explained("$LISTS | padded_batch { batch_size: 9 }"), "computes all rows"));
  CHECK(absl::StrContains(explained("$GZIP | batch { batch_size: 9 }"),
                          "7 of its files have no index"));
  CHECK(absl::StrContains(explained("$RANGE | filter { predicate: 'value > 3' } | batch { "
                                    "batch_size: 9 }"),
                          "values decide the order: each host computes all elements up to filter"));
  CHECK(absl::StrContains(
      explained("$LISTS | bucket_by_sequence_length { element_length: 'shape(ints)[0]' "
                "bucket_boundary: 3 bucket_batch_size: 9 bucket_batch_size: 9 }"),
      "values decide the order: each host computes all elements up to bucket_by_sequence_length"));
  CHECK(absl::StrContains(
      explained("$RANGE | group_by_window { key: 'value % 3' window_size: 9 (| batch { batch_size: "
                "9 } |) }"),
      "values decide the order: each host computes all elements up to group_by_window"));
  CHECK(absl::StrContains(
      explained("$RANGE | map { out: 'v = value' } | cache {} | batch { batch_size: 9 }"),
      "stages take or keep whole elements: each host computes all of them up to cache"));
  CHECK(absl::StrContains(
      explained("$RANGE | batch { batch_size: 9 } | map { out: 'm = value - "
                "sum(value)' out: 'sum = sum(value)' }"),
      "each host computes all of it, and keeps its own rows; features whose first "
      "axis are not the batch's rows come whole to every host: sum"));
  CHECK(!absl::StrContains(explained("$SHARDS | batch { batch_size: 16 }"), "note: world"));
}

}  // namespace
}  // namespace penstock::test
