#include <algorithm>
#include <numeric>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock::test {
namespace {

constexpr char kRest[] =
    "stage { parse_example { feature { key: 'n' int64 {} } } } stage { batch { batch_size: 10 } }";

// Three shards of 40, none and 61 records, numbered through.
std::string Source(const ScratchFolder& folder) {
  WriteShard(folder / "a", 0, 40);
  WriteShard(folder / "b", 40, 0);
  WriteShard(folder / "c", 40, 61);
  return absl::StrCat("stage { tfrecord { files: '", folder.path(), "/?' } } ");
}

TEST_CASE("a global shuffle gives every record once a pass, in another order each") {
  ScratchFolder folder;
  const std::string spec = absl::StrCat(
      Source(folder), "stage { shuffle { global: true seed: 3 } } stage { repeat { count: 2 } } ",
      kRest);
  const std::vector<int64_t> values = Int64s(RunText(spec));
  REQUIRE(values.size() == 202);
  std::vector<int64_t> first(values.begin(), values.begin() + 101);
  std::vector<int64_t> second(values.begin() + 101, values.end());
  CHECK(first != second);
  std::vector<int64_t> all(101);
  std::iota(all.begin(), all.end(), 0);
  CHECK(first != all);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  CHECK(first == all);
  CHECK(second == all);
}

TEST_CASE("without reshuffling each pass of a global shuffle is the same") {
  ScratchFolder folder;
  const std::string spec =
      absl::StrCat(Source(folder),
                   "stage { shuffle { global: true seed: 3 reshuffle_each_iteration: false } } "
                   "stage { repeat { count: 2 } } ",
                   kRest);
  const std::vector<int64_t> values = Int64s(RunText(spec));
  REQUIRE(values.size() == 202);
  CHECK(std::equal(values.begin(), values.begin() + 101, values.begin() + 101));
}

TEST_CASE("a global shuffle is the same for any number of workers and goes on from a cursor") {
  ScratchFolder folder;
  const std::string spec = absl::StrCat(
      Source(folder), "stage { shuffle { global: true seed: 3 } } stage { repeat {} } ", kRest);
  RunOptions options;
  options.max_steps = 40;
  options.workers = 1;
  const RunResult one = RunText(spec, options);
  options.workers = 4;
  const RunResult four = RunText(spec, options);
  CHECK(one.batches == four.batches);
  for (const size_t step : {0, 9, 10, 11, 30}) {
    options.cursor = one.batches[step].info.cursor;
    options.max_steps = 5;
    const RunResult rest = RunText(spec, options);
    REQUIRE(rest.batches.size() == 5);
    for (size_t i = 0; i < 5; ++i) CHECK(rest.batches[i] == one.batches[step + 1 + i]);
  }
}

TEST_CASE("blocks of a global shuffle come whole, before the next group begins") {
  ScratchFolder folder;
  const std::string spec = absl::StrCat(
      Source(folder),
      "stage { shuffle { global: true seed: 3 block_size: 10 buffer_size: 21 read_first: true } } "
      "stage { repeat { count: 2 } } ",
      kRest);
  const std::vector<int64_t> values = Int64s(RunText(spec));
  REQUIRE(values.size() == 202);
  for (const size_t pass : {0, 101}) {
    std::vector<int64_t> all(101);
    std::iota(all.begin(), all.end(), 0);
    std::vector<int64_t> own(values.begin() + pass, values.begin() + pass + 101);
    CHECK(own != all);
    // Groups of three blocks, one of which may be the last record alone.
    std::set<int64_t> blocks;
    for (size_t i = 0; i < 21; ++i) blocks.insert(own[i] / 10);
    CHECK(blocks.size() == 3);
    std::sort(own.begin(), own.end());
    CHECK(own == all);
  }
}

TEST_CASE("files that are read first give the same records") {
  ScratchFolder folder;
  const std::string spec = absl::StrCat(
      Source(folder), "stage { shuffle { global: true seed: 3 read_first: true } } ", kRest);
  const RunResult whole = RunText(spec);  // makes the indices
  CHECK(whole.status.ok());
  const std::string plain =
      absl::StrCat(Source(folder), "stage { shuffle { global: true seed: 3 } } ", kRest);
  CHECK(Int64s(whole) == Int64s(RunText(plain)));
}

TEST_CASE("where a global shuffle cannot stand is said") {
  ScratchFolder folder;
  const std::string source = Source(folder);
  const std::string global = "stage { shuffle { global: true } } ";
  for (const std::string& spec :
       {absl::StrCat(source, "stage { take { count: 5 } } ", global, kRest),
        absl::StrCat("stage { range { stop: 5 } } ", global),
        absl::StrCat(source, "stage { shuffle { buffer_size: 5 } } ", global, kRest)}) {
    const auto plan = PlanText(spec);
    CAPTURE(spec);
    REQUIRE_FALSE(plan.ok());
    CHECK(absl::StrContains(plan.status().message(), "directly after a source of records"));
  }
  const auto plan =
      PlanText(absl::StrCat(source, "stage { shuffle { global: true buffer_size: 5 } } ", kRest));
  REQUIRE_FALSE(plan.ok());
  CHECK(absl::StrContains(plan.status().message(), "a global shuffle without a block_size has no"));
  const struct {
    const char* options;
    const char* message;
  } kRefused[] = {
      {"global: true block_size: -1 buffer_size: 9",
       "block_size: expected 1 to 2147483647, found -1"},
      {"global: true block_size: 10 buffer_size: 9", "whole blocks of 10; expected that to"},
      {"global: true block_size: 10", "whole blocks of 10; expected that to"},
      {"block_size: 10 buffer_size: 9", "block_size: is for a global shuffle"},
      {"read_first: true buffer_size: 9", "read_first: is for a global shuffle"},
  };
  for (const auto& refused : kRefused) {
    const auto wrong =
        PlanText(absl::StrCat(source, "stage { shuffle { ", refused.options, " } } ", kRest));
    CAPTURE(refused.options);
    REQUIRE_FALSE(wrong.ok());
    CHECK(absl::StrContains(wrong.status().message(), refused.message));
  }
}

TEST_CASE("damage under a global shuffle is an error with the record's address") {
  ScratchFolder folder;
  const std::string spec =
      absl::StrCat(Source(folder), "stage { shuffle { global: true seed: 3 } } ", kRest);
  RunText(spec);  // makes the indices
  FlipBit(folder / "c", 200);
  const RunResult result = RunText(spec);
  CHECK(result.finished);
  CHECK(absl::IsDataLoss(result.status));
  CHECK(absl::StrContains(result.status.message(), folder / "c"));
  CHECK(absl::StrContains(result.status.message(), "offset"));
}

TEST_CASE("A global shuffle judges what is damaged when a pass begins, and counts it in each") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 10);
  std::string bytes = ReadFile(folder / "a");
  const size_t frame = bytes.size() / 10;
  bytes[3 * frame - 1] ^= 1;
  bytes[7 * frame - 1] ^= 1;
  WriteFile(folder / "a", bytes);
  const auto run = [&](const std::string& fraction) {
    return RunText(absl::StrCat(
        "stage { tfrecord { files: '", folder / "a",
        "' damage { on_damage: SKIP_RECORD max_skipped_fraction: ", fraction,
        " } } } stage { shuffle { global: true seed: 1 } } stage { repeat { count: 3 } } stage { "
        "parse_example { feature { key: 'n' int64 {} } } } stage { batch { batch_size: 4 } }"));
  };
  const RunResult some = run("0.2");
  CHECK(some.status.ok());
  CHECK(some.stats.skipped == 3 * 2);
  CHECK(some.batches.size() == 3 * 8 / 4);
  // However few records there are.
  const RunResult none = run("0.19");
  CHECK(none.status.code() == absl::StatusCode::kDataLoss);
  CHECK(none.batches.empty());
}

TEST_CASE("What a global shuffle leaves out is listed with its file and its pass") {
  ScratchFolder folder;
  WriteShard(folder / "first", 0, 5);
  WriteShard(folder / "a", 0, 4);
  WriteShard(folder / "b", 4, 6);
  const size_t frame = ReadFile(folder / "b").size() / 6;
  FlipBit(folder / "b", 3 * frame - 1);
  const std::string shuffled = absl::StrCat(
      "tfrecord { files: '", folder / "[ab]",
      "' damage { on_damage: SKIP_RECORD } } } stage { shuffle { global: true seed: 1 } } ");
  const std::string rest =
      "stage { parse_example { feature { key: 'n' int64 {} } } } stage { batch { batch_size: 3 } }";
  const auto check = [&](const RunResult& result, uint32_t file, std::vector<uint64_t> epochs) {
    REQUIRE(result.status.ok());
    REQUIRE(result.skipped.size() == epochs.size());
    for (size_t i = 0; i < epochs.size(); ++i) {
      CHECK(result.skipped[i].file == file);
      CHECK(result.skipped[i].epoch == epochs[i]);
      CHECK(result.skipped[i].damage.offset == 2 * frame);
      CHECK(result.skipped[i].damage.length == frame);
    }
  };
  const std::string passes =
      absl::StrCat("stage { ", shuffled, "stage { repeat { count: 3 } } ", rest);
  const RunResult whole = RunText(passes);
  check(whole, 1, {0, 1, 2});
  // From a cursor on those of its pass, wherever they lie, and of the passes behind it.
  REQUIRE(whole.batches.size() == 9);
  check(RunText(passes, {.cursor = whole.batches[4].info.cursor}), 1, {1, 2});
  // Files have their numbers among all of a pipeline's.
  check(
      RunText(absl::StrCat("stage { concatenate { input { stage { tfrecord { files: '",
                           folder / "first", "' } } } input { stage { ", shuffled, "} } } ", rest)),
      2, {0});
}

}  // namespace
}  // namespace penstock::test
