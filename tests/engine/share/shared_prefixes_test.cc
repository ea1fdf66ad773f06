// Pipelines that begin with the same work: the bytes, errors and skips of each are what they are
// alone, and the work is done once.
#include "server/engine/share/shared_prefixes.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/plan/plan_impl.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock::test {
namespace {

constexpr int64_t kRecords = 3000;
constexpr size_t kDataBytes = 300;
// More than the rows over which two pipelines of some workers measure.
constexpr uint64_t kMeasured = 64 + 8 * 32;

std::shared_ptr<SharedPrefixes> Prefixes(uint64_t bytes_max = uint64_t{64} << 20,
                                         uint64_t element_ns_min = 0,
                                         absl::Duration wait_max = absl::Seconds(60)) {
  SharedPrefixOptions options;
  options.bytes_max = bytes_max;
  options.element_ns_min = element_ns_min;
  options.wait_max = wait_max;
  return SharedPrefixes::Create(options);
}

// What both of two pipelines begin with, but for the order.
std::string Begin(const std::string& files, const std::string& order = "",
                  const std::string& let = "s = float32(n) / 7") {
  return absl::StrCat("stage { tfrecord { files: '", files, "' cycle_length: 3 } } ", order,
                      "stage { parse_example { feature { key: 'd' bytes { length: ", kDataBytes,
                      " } } feature { key: 'n' int64 {} } } } stage { map { let: '", let,
                      "' out: 'd = unpack_bits(d)' out: 's = s' out: 'n = n' } } ");
}

std::string BeginOfOne(const std::string& files) {
  return Begin(files, "stage { shuffle { buffer_size: 200 seed: 1 } } ") +
         "stage { map { out: 'x = d * 2' out: 'y = s + random_uniform([1], seed=3)' out: 'n = n' } "
         "} "
         "stage { batch { batch_size: 100 } } stage { repeat { count: 2 } }";
}

std::string BeginOfOther(const std::string& files) {
  return Begin(files, "stage { shuffle { buffer_size: 300 seed: 2 } } ") +
         "stage { map { out: 'x = d[:100]' out: 'n = n' } } stage { batch { batch_size: 37 } } "
         "stage { repeat { count: 2 } }";
}

void WriteShards(const ScratchFolder& folder) {
  for (int64_t shard = 0; shard < 3; ++shard)
    WriteShard(folder / absl::StrCat(shard), shard * kRecords / 3, kRecords / 3, kDataBytes);
}

std::shared_ptr<const Plan> PlanOf(const std::string& text) {
  auto plan = PlanText(text);
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  return *plan;
}

std::vector<RunResult> Together(const std::vector<std::string>& texts,
                                const std::shared_ptr<SharedPrefixes>& prefixes, int workers = 2,
                                uint64_t max_steps_of_last = 1000) {
  std::vector<PlannedRun> runs;
  for (size_t i = 0; i < texts.size(); ++i) {
    RunOptions options;
    options.workers = workers;
    options.prefixes = prefixes;
    options.pipeline = absl::StrCat("p", i);
    if (i + 1 == texts.size()) options.max_steps = max_steps_of_last;
    runs.push_back({PlanOf(texts[i]), options});
  }
  return RunTogether(runs);
}

void CheckAsAlone(const std::vector<std::string>& texts, const std::vector<RunResult>& together) {
  for (size_t i = 0; i < texts.size(); ++i) {
    const RunResult alone = RunText(texts[i]);
    INFO("pipeline " << i << ": " << alone.status.ToString());
    REQUIRE_FALSE(alone.batches.empty());
    CHECK(together[i].batches == alone.batches);
    CHECK(together[i].status == alone.status);
    REQUIRE(together[i].batches.size() == alone.batches.size());
    for (size_t step = 0; step < alone.batches.size(); ++step)
      CHECK(WithoutCounts(together[i].batches[step].info.cursor) ==
            WithoutCounts(alone.batches[step].info.cursor));
  }
}

TEST_CASE("Two pipelines over one decode have the bytes and cursors that they have alone") {
  ScratchFolder folder;
  WriteShards(folder);
  const std::vector<std::string> texts = {BeginOfOne(folder / "*"), BeginOfOther(folder / "*")};
  for (const int workers : {1, 3}) {
    INFO(workers << " workers");
    const std::vector<RunResult> results = Together(texts, Prefixes(), workers);
    CheckAsAlone(texts, results);
    uint64_t hits = 0, misses = 0;
    for (size_t i = 0; i < 2; ++i) {
      REQUIRE(results[i].stats.shared.size() == 1);
      const SharedStats& shared = results[i].stats.shared[0];
      CHECK(shared.stage == "map");
      CHECK(shared.state == "sharing");
      CHECK(shared.with == std::vector<std::string>{absl::StrCat("p", 1 - i)});
      hits += shared.hits;
      misses += shared.misses;
      // Each stage counts all of its elements, wherever they came from.
      for (const StageStats& stage : results[i].stats.stages) {
        if (stage.name == "parse_example" || absl::StartsWith(stage.name, "map"))
          CHECK(stage.elements == 2 * kRecords);
      }
    }
    CHECK(hits + misses <= 4 * kRecords);
    CHECK(hits + misses + kMeasured >= 4 * kRecords);
    // Once for each element and epoch, though the two orders differ.
    CHECK(misses <= 2 * kRecords + kMeasured);
    CHECK(hits + kMeasured >= 2 * kRecords);
  }
}

TEST_CASE("Pipelines that differ only in their batches share all of their work") {
  ScratchFolder folder;
  WriteShards(folder);
  const std::vector<std::string> texts = {
      Begin(folder / "*") + "stage { batch { batch_size: 64 } }",
      Begin(folder / "*") + "stage { batch { batch_size: 50 } }",
      Begin(folder / "*") + "stage { batch { batch_size: 7 } }"};
  const std::vector<RunResult> results = Together(texts, Prefixes());
  CheckAsAlone(texts, results);
  uint64_t misses = 0;
  for (const RunResult& result : results) misses += result.stats.shared.at(0).misses;
  CHECK(misses <= kRecords + kMeasured);
}

TEST_CASE("Rows of sizes that only the data tells are shared as others are") {
  ScratchFolder folder;
  WriteLists(folder / "a", 0, 2000);
  const std::string begin = absl::StrCat(
      "stage { tfrecord { files: '", folder / "a",
      "' } } stage { parse_example { feature { key: 'words' ragged { dtype: 'string' } } "
      "feature { key: 'n' int64 {} } } } ");
  const std::vector<std::string> texts = {
      begin +
          "stage { shuffle { buffer_size: 50 seed: 2 } } stage { ragged_batch { batch_size: 10 } }",
      begin + "stage { ragged_batch { batch_size: 33 } }"};
  const std::vector<RunResult> results = Together(texts, Prefixes());
  CheckAsAlone(texts, results);
  CHECK(results[0].stats.shared.at(0).hits + results[1].stats.shared.at(0).hits + kMeasured >=
        2000);
}

TEST_CASE("A window that holds next to nothing changes no byte") {
  ScratchFolder folder;
  WriteShards(folder);
  const std::vector<std::string> texts = {BeginOfOne(folder / "*"), BeginOfOther(folder / "*")};
  for (const uint64_t bytes : {1, 20'000, 300'000}) {
    INFO(bytes);
    const std::vector<RunResult> results = Together(texts, Prefixes(bytes), 3);
    CheckAsAlone(texts, results);
    for (const RunResult& result : results) CHECK(result.stats.shared.at(0).bytes <= bytes);
  }
}

TEST_CASE("Who does not wait for what another one is making has the same bytes") {
  ScratchFolder folder;
  WriteShards(folder);
  const std::vector<std::string> texts = {BeginOfOne(folder / "*"), BeginOfOther(folder / "*")};
  CheckAsAlone(texts, Together(texts, Prefixes(uint64_t{64} << 20, 0, absl::ZeroDuration()), 3));
}

TEST_CASE("One of two may stop in the middle") {
  ScratchFolder folder;
  WriteShards(folder);
  const std::vector<std::string> texts = {BeginOfOne(folder / "*"), BeginOfOther(folder / "*")};
  const auto prefixes = Prefixes(500'000);
  // The second makes ten steps, waits for a slot that never comes, and is stopped; then it is gone.
  const std::vector<RunResult> results = Together(texts, prefixes, 2, /*max_steps_of_last=*/10);
  const RunResult alone = RunText(texts[0]);
  CHECK(results[0].batches == alone.batches);
  const RunResult after = RunPlan(PlanOf(texts[0]), {.prefixes = prefixes, .pipeline = "p0"});
  CHECK(after.batches == alone.batches);
  CHECK(after.stats.shared.empty());
}

TEST_CASE("A row that fails fails each pipeline as if it were alone") {
  ScratchFolder folder;
  std::vector<std::string> records;
  for (int64_t n = 0; n < 1000; ++n)
    records.push_back(MakeRecord(n, n == 700 || n == 333 ? 5 : kDataBytes));
  WriteRecords(folder / "a", records);
  const std::vector<std::string> texts = {
      Begin(folder / "a") + "stage { map { out: 'x = d * 2' } } stage { batch { batch_size: 10 } }",
      Begin(folder / "a", "stage { shuffle { buffer_size: 90 seed: 2 } } ") +
          "stage { batch { batch_size: 7 } }",
      Begin(folder / "a") + "stage { ignore_errors {} } stage { batch { batch_size: 13 } }"};
  const std::vector<RunResult> results = Together(texts, Prefixes(), 3);
  CheckAsAlone(texts, results);
  CHECK(absl::IsDataLoss(results[0].status));
  CHECK(results[2].status.ok());
  CHECK(results[2].stats.skipped == 2);
}

TEST_CASE("What nobody needs of the common work fails nobody") {
  ScratchFolder folder;
  WriteShards(folder);
  const std::string begin =
      absl::StrCat("stage { tfrecord { files: '", folder / "*",
                   "' } } stage { parse_example { feature { key: 'd' bytes {} } feature { key: 'n' "
                   "int64 {} } } } "
                   "stage { map { out: 'picture = decode_jpeg(d, channels=3)' "
                   "out: 'n = n' } } ");
  const std::vector<std::string> texts = {
      begin + "stage { map { out: 'x = n * 2' } } stage { batch { batch_size: 10 } }",
      begin + "stage { map { out: 'x = n * 3' } } stage { batch { batch_size: 20 } }"};
  REQUIRE(RunText(texts[0]).status.ok());
  CheckAsAlone(texts, Together(texts, Prefixes()));
}

TEST_CASE("Work that is cheaper than handing it over is not shared") {
  ScratchFolder folder;
  WriteShards(folder);
  const std::vector<std::string> texts = {BeginOfOne(folder / "*"), BeginOfOther(folder / "*")};
  const std::vector<RunResult> results =
      Together(texts, Prefixes(1 << 20, /*element_ns_min=*/1'000'000'000));
  CheckAsAlone(texts, results);
  for (const RunResult& result : results) {
    CHECK(result.stats.shared.at(0).state == "cheap");
    CHECK(result.stats.shared.at(0).hits == 0);
  }
}

TEST_CASE("A value error in front of a filter, and a filter over shared work") {
  ScratchFolder folder;
  WriteShards(folder);
  const std::vector<std::string> texts = {
      Begin(folder / "*") +
          "stage { filter { predicate: 'n % 3 == 0' } } stage { batch { batch_size: 10 } }",
      Begin(folder / "*") +
          "stage { filter { predicate: 'n % 2 == 0' } } stage { shuffle { buffer_size: 10 seed: 1 "
          "} } "
          "stage { batch { batch_size: 11 } }"};
  const std::vector<RunResult> results = Together(texts, Prefixes());
  CheckAsAlone(texts, results);
  CHECK(results[0].stats.shared.at(0).hits + results[1].stats.shared.at(0).hits + kMeasured >=
        kRecords);
}

struct Pairing {
  const char* what;
  std::string one;
  std::string other;
  std::string stage;  // up to which they share; "": they do not
};

TEST_CASE("Who shares with whom, and up to where") {
  ScratchFolder folder;
  WriteShards(folder);
  WriteShard(folder / "other", 0, 10, kDataBytes);
  const std::string batch = "stage { batch { batch_size: 10 } }";
  const std::string all = folder / "[012]";
  const std::vector<Pairing> pairings = {
      {"the same text", Begin(all) + batch, Begin(all) + batch, "map"},
      {"another order", Begin(all) + batch,
       Begin(all, "stage { take { count: 20 } } stage { shuffle { buffer_size: 5 } } ") + batch,
       "map"},
      {"a global shuffle", Begin(all) + batch,
       Begin(all, "stage { shuffle { global: true } } ") + batch, "map"},
      {"some of the files", Begin(all) + batch, Begin(folder / "2") + batch, "map"},
      {"other files", Begin(all) + batch, Begin(folder / "other") + batch, ""},
      {"another map", Begin(all) + batch, Begin(all, "", "s = float32(n) / 8") + batch,
       "parse_example"},
      {"behind a batch", Begin(all) + batch, Begin(all, batch), ""},
      {"drawn by chance", Begin(all, "", "s = random_uniform([1], seed=1)") + batch,
       Begin(all, "", "s = random_uniform([1], seed=1)") + batch, "parse_example"},
      {"no work", "stage { tfrecord { files: '" + all + "' } }" + batch,
       "stage { tfrecord { files: '" + all + "' } }" + batch, ""},
      {"lines of text", "stage { text_line { files: '" + all + "' } }" + batch, Begin(all) + batch,
       ""},
  };
  for (const Pairing& pairing : pairings) {
    INFO(pairing.what);
    const auto prefixes = Prefixes();
    const auto one = prefixes->Join("one", PlanImpl::WorkOf(PlanOf(pairing.one)));
    CHECK(one->Stats().empty());
    const auto other = prefixes->Join("other", PlanImpl::WorkOf(PlanOf(pairing.other)));
    const std::vector<SharedStats> of_other = other->Stats();
    CHECK(of_other.size() == (pairing.stage.empty() ? 0 : 1));
    CHECK(one->Stats().size() == of_other.size());
    for (const SharedStats& stats : of_other) {
      CHECK(stats.stage == pairing.stage);
      CHECK(stats.with == std::vector<std::string>{"one"});
      CHECK(stats.state == "measuring");
    }
  }
}

TEST_CASE("What an element costs is measured, and compared with its bytes") {
  SharedElements elements(1 << 20);
  SharedPrefixOptions options;
  options.element_ns_min = 1000;
  const auto state_behind = [&](uint64_t rows, uint64_t element_ns, uint64_t element_bytes) {
    PrefixGroup group(elements, options);
    group.AddMeasured(rows, rows * element_ns, rows * element_bytes);
    return group.state();
  };
  // The bytes cost a nanosecond for four.
  CHECK(state_behind(64, 1000, 0) == PrefixState::kSharing);
  CHECK(state_behind(64, 999, 0) == PrefixState::kCheap);
  CHECK(state_behind(64, 1999, 4000) == PrefixState::kCheap);
  CHECK(state_behind(64, 2000, 4000) == PrefixState::kSharing);
  CHECK(state_behind(63, 1'000'000, 0) == PrefixState::kMeasuring);
  options.element_ns_min = 0;
  CHECK(state_behind(64, 1, 4000) == PrefixState::kSharing);
}

TEST_CASE("A file that was written again is another one") {
  ScratchFolder folder;
  WriteShards(folder);
  const std::string text = BeginOfOne(folder / "*");
  const auto before = PlanOf(text);
  const bool keeps_time = GENERATE(false, true);
  for (const char* shard : {"0", "1", "2"}) {
    const std::string path = folder / shard;
    const auto time = std::filesystem::last_write_time(path);
    if (keeps_time) {
      // In its middle, of the same size.
      std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(path) / 2));
      file.put('x');
    }
    std::filesystem::last_write_time(path, keeps_time ? time : time + std::chrono::hours(1));
  }
  const auto prefixes = Prefixes();
  const auto a = prefixes->Join("a", PlanImpl::WorkOf(before));
  const auto b = prefixes->Join("b", PlanImpl::WorkOf(PlanOf(text)));
  CHECK(b->Stats().empty());
}

// How many nodes of its work share something at present.
int NumShares(const PrefixMember& member, const Plan& plan) {
  int shares = 0;
  for (int node = 0; node < static_cast<const PlanImpl&>(plan).num_shareable(); ++node)
    shares += member.ShareOf(node) != nullptr ? 1 : 0;
  return shares;
}

TEST_CASE("Who is left alone shares nothing, and all who come one after another have a place") {
  ScratchFolder folder;
  WriteShards(folder);
  const auto plan = PlanOf(BeginOfOne(folder / "*"));
  const auto prefixes = Prefixes();
  const auto a = prefixes->Join("a", PlanImpl::WorkOf(plan));
  // Nor with itself, as it is while it is changed.
  auto again = prefixes->Join("a", PlanImpl::WorkOf(plan));
  CHECK(NumShares(*a, *plan) + NumShares(*again, *plan) == 0);
  again.reset();
  for (int i = 0; i < 2 * SharedElements::kMaxMembers; ++i) {
    const auto b = prefixes->Join("b", PlanImpl::WorkOf(plan));
    REQUIRE(NumShares(*a, *plan) == 1);
    REQUIRE(NumShares(*b, *plan) == 1);
  }
  CHECK(NumShares(*a, *plan) == 0);
  CHECK(a->Stats().at(0).state == "alone");
}

TEST_CASE("Groups form anew as pipelines come and go") {
  ScratchFolder folder;
  WriteShards(folder);
  const std::string batch = "stage { batch { batch_size: 10 } }";
  const auto plan = PlanOf(BeginOfOne(folder / "*"));
  const auto shorter = PlanOf(Begin(folder / "*", "", "s = float32(n) / 8") + batch);
  const auto prefixes = Prefixes();
  auto a = prefixes->Join("a", PlanImpl::WorkOf(plan));
  auto b = prefixes->Join("b", PlanImpl::WorkOf(plan));
  // Another one of the same pipeline, as while it is changed, is no partner of it.
  auto again = prefixes->Join("a", PlanImpl::WorkOf(plan));
  CHECK(b->Stats().at(0).with == std::vector<std::string>{"a"});
  a.reset();
  CHECK(b->Stats().at(0).with == std::vector<std::string>{"a"});
  // Who has less in common than the two have stays alone.
  auto c = prefixes->Join("c", PlanImpl::WorkOf(shorter));
  CHECK(c->Stats().empty());
  again.reset();
  CHECK(b->Stats().at(0).state == "alone");
  CHECK(b->Stats().at(0).with.empty());
  // Now that b is alone, it may share less.
  auto d = prefixes->Join("d", PlanImpl::WorkOf(shorter));
  REQUIRE(d->Stats().size() == 1);
  CHECK(d->Stats().at(0).with == std::vector<std::string>{"c"});
  CHECK(d->Stats().at(0).stage == "map");
  d.reset();
  auto e = prefixes->Join("e", PlanImpl::WorkOf(plan));
  CHECK(e->Stats().at(0).with == std::vector<std::string>{"b"});
  CHECK(b->Stats().at(0).state == "measuring");
  b.reset();
  auto f = prefixes->Join("f", PlanImpl::WorkOf(shorter));
  CHECK(f->Stats().at(0).with == std::vector<std::string>{"c"});
}

}  // namespace
}  // namespace penstock::test
