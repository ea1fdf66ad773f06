// Fault 35: what a pipeline computes and keeps has a limit. Whatever grows ends the stream with an
// error that names it, and not the process.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/memory_account.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock::test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

std::shared_ptr<MemoryAccount> Account(uint64_t bytes_max, MemoryAccount::Guard guard = nullptr) {
  MemoryAccount::Options options;
  options.name = "pipeline p";
  options.bytes_max = bytes_max;
  options.limit = "the limit";
  options.memory_bytes = 4 * bytes_max;
  options.guard = std::move(guard);
  return MemoryAccount::Create(std::move(options));
}

RunResult RunWithin(MemoryAccount& account, const std::string& spec,
                    const RunOptions& options = {}) {
  const MemoryAccount::Scope charged(&account);
  return RunText(spec, options);
}

std::string DoublingLets(int count) {
  std::string lets = "let: 's0 = as_string(value) ' ";
  for (int i = 0; i < count; ++i)
    absl::StrAppend(&lets, "let: 's", i + 1, " = s", i, " + s", i, "' ");
  return lets;
}

struct Growing {
  std::string what, stages, stage;
};

std::vector<Growing> GrowWithoutEnd() {
  const std::string kBatch = "stage { batch { batch_size: 4 } }";
  return {
      {"rows that double",
       absl::StrCat("stage { range { stop: 5 } } stage { map { ", DoublingLets(60),
                    " out: 'n = string_length(s60)' } } ", kBatch),
       "stage map: "},
      {"rows that double in front of a filter",
       absl::StrCat("stage { range { stop: 5 } } stage { map { ", DoublingLets(60),
                    " out: 'n = string_length(s60)' } } stage { filter { predicate: 'n > 0' } } ",
                    kBatch),
       "stage map: "},
      {"a state that doubles",
       absl::StrCat("stage { range { stop: 1000 } } stage { scan { initial_state { name: 's' "
                    "string_value: 'x' } state: 's = s + s' out: 'n = string_length(s)' } } ",
                    kBatch),
       "stage scan: "},
      {"a row of many known elements",
       absl::StrCat("stage { range { stop: 5 } } stage { map { let: 'v = arange(16777216) + value' "
                    "out: 'm = sum(v)' } } ",
                    kBatch),
       "stage map: "},
      {"groups of ever new keys",
       "stage { counter {} } stage { group_by_window { key: 'value' window_size: 2 input { stage { "
       "batch { batch_size: 2 } } } } }",
       "stage group_by_window: "},
      {"a group that is never full",
       "stage { counter {} } stage { group_by_window { key: 'value * 0' window_size: 1099511627776 "
       "input { stage { batch { batch_size: 2 } } } } }",
       "stage group_by_window: "},
      {"a window of many elements",
       "stage { counter {} } stage { window { size: 1073741824 input { stage { batch { batch_size: "
       "2 "
       "} } } } }",
       "stage window: "},
      {"a shuffle behind a filter",
       absl::StrCat("stage { counter {} } stage { filter { predicate: 'value >= 0' } } stage { "
                    "shuffle { buffer_size: 2147483647 seed: 1 } } ",
                    kBatch),
       ""},
      {"a shuffle of rows of many bytes",
       absl::StrCat("stage { counter {} } stage { map { out: 'v = arange(200) + value' } } stage { "
                    "filter { predicate: 'v[0] >= 0' } } stage { shuffle { buffer_size: 2147483647 "
                    "seed: 1 } } ",
                    kBatch),
       ""},
      {"a bucket that is never full",
       "stage { counter {} } stage { bucket_by_sequence_length { element_length: 'value * 0' "
       "bucket_boundary: 2 bucket_batch_size: 16777216 bucket_batch_size: 1 no_padding: true } }",
       "stage bucket_by_sequence_length: "},
      {"a window of long documents",
       absl::StrCat("stage { counter {} } stage { map { out: 'v = compress(arange(65536) >= 0, "
                    "arange(65536))' } } stage { pack { sequence_length: 1000 window: 1048576 "
                    "method: 'best_fit' } } ",
                    kBatch),
       ""},
      {"different values",
       absl::StrCat("stage { counter {} } stage { unique {} } stage { filter { predicate: 'value < "
                    "0' } } ",
                    kBatch),
       ""},
      {"a row of many elements that become rows",
       absl::StrCat(
           "stage { range { stop: 5 } } stage { map { out: 'v = arange(4194304)' } } stage { "
           "unbatch {} } ",
           kBatch),
       ""},
  };
}

TEST_CASE("whatever grows without end meets the limit, with the stage") {
  for (const Growing& one : GrowWithoutEnd()) {
    for (const int workers : {1, 3}) {
      INFO(one.what << ", " << workers << " workers");
      const auto account = Account(32 * kMiB);
      const RunResult result =
          RunWithin(*account, one.stages, {.workers = workers, .max_steps = 100'000'000});
      CHECK(result.finished);
      INFO(result.status.ToString());
      CHECK(absl::IsResourceExhausted(result.status));
      CHECK(absl::StrContains(result.status.message(),
                              "pipeline p takes more memory than the limit"));
      CHECK(absl::StrContains(result.status.message(), "> 32.0 MiB (the limit)"));
      CHECK(absl::StartsWith(result.status.message(), one.stage.empty() ? "stage " : one.stage));
      CHECK(account->taken() == 0);
    }
  }
}

// What malloc() has given out and not got back.
uint64_t Allocated() {
  const struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

TEST_CASE("of what grows, all is charged") {
  int compared = 0;
  for (const Growing& one : GrowWithoutEnd()) {
    INFO(one.what);
    // Asked whenever 64 MiB more have been taken: what lies between is what grows.
    std::vector<uint64_t> allocated, taken;
    std::shared_ptr<MemoryAccount> account;
    account = Account(160 * kMiB, [&](uint64_t) {
      allocated.push_back(Allocated());
      taken.push_back(account->taken());
      return std::nullopt;
    });
    const RunResult result =
        RunWithin(*account, one.stages, {.workers = 1, .max_steps = 100'000'000});
    CHECK(absl::IsResourceExhausted(result.status));
    // A long row is refused before it is asked.
    if (allocated.empty()) continue;
    ++compared;
    for (size_t i = 1; i < allocated.size(); ++i) {
      const uint64_t more = allocated[i] - std::min(allocated[i], allocated.front());
      const uint64_t charged = taken[i] - std::min(taken[i], taken.front());
      CHECK(more < charged + charged / 4 + 8 * kMiB);
    }
  }
  CHECK(compared >= 10);
}

// What a function gathers beside its result: sixteen bytes for each character of a text of one
// byte each, for one.
TEST_CASE("what a function keeps until its row is made is within the limit") {
  const std::string text =
      absl::StrCat("stage { range { stop: 1 } } stage { map { ", DoublingLets(22), " out: 'n = ");
  const struct {
    const char* out;
    uint64_t limit;
  } cases[] = {
      {"shape(unicode_split(s22))[0]", 48 * kMiB},
      {"shape(bytes_split(s22))[0]", 48 * kMiB},
      {"shape(string_split(s22, \"0\"))[0]", 48 * kMiB},
      {"shape(unicode_decode(s22))[0]", 34 * kMiB},
  };
  for (const auto& [out, limit] : cases) {
    INFO(out);
    const std::string spec = absl::StrCat(text, out, "' } } stage { batch { batch_size: 1 } }");
    const auto account = Account(limit);
    const RunResult within = RunWithin(*account, spec, {.workers = 1});
    INFO(within.status.ToString());
    CHECK(absl::IsResourceExhausted(within.status));
    CHECK(account->taken() == 0);
    CHECK(RunWithin(*Account(512 * kMiB), spec, {.workers = 1}).status.ok());
  }
}

TEST_CASE("what is decoded of a document is within the limit, and leaves nothing behind") {
  ScratchFolder folder;
  const auto line = [&](const std::string& name, absl::string_view document) {
    std::ofstream(folder / name) << document << "\n";
    return folder / name;
  };
  // 6 MiB each: a token a byte, numbers of two bytes, lists of three, strings of three.
  std::string numbers = "{\"v\":[1", lists = "{\"v\":[[]", strings = "{\"v\":[\"\"";
  for (int i = 0; i < 3 << 20; ++i) numbers += ",1";
  for (int i = 0; i < 2 << 20; ++i) {
    lists += ",[]";
    strings += ",\"\"";
  }
  const struct {
    std::string file;
    const char* feature;
    uint64_t limit;  // the document and its row alone have room
  } cases[] = {
      {line("numbers", numbers + "]}"), "dtype: 'int64' shape: -1", 60 * kMiB},
      {line("lists", lists + "]}"), "dtype: 'int64' shape: -1 shape: -1", 60 * kMiB},
      {line("strings", strings + "]}"), "dtype: 'string' shape: -1", 40 * kMiB},
  };
  for (const auto& [file, feature, limit] : cases) {
    INFO(file);
    const std::string spec = absl::StrCat("stage { json_lines { files: '", file,
                                          "' } } stage { decode_json { feature { name: 'v' ",
                                          feature, " } } } stage { batch { batch_size: 1 } }");
    const auto account = Account(limit);
    const RunResult within = RunWithin(*account, spec, {.workers = 1});
    INFO(within.status.ToString());
    CHECK(absl::StrContains(within.status.message(), "takes more memory"));
    CHECK(account->taken() == 0);
    const RunResult whole = RunWithin(*Account(1024 * kMiB), spec, {.workers = 1});
    INFO(whole.status.ToString());
    // A batch of it is larger than a slot of the tests' ring.
    CHECK(absl::StrContains(whole.status.message(), "batch larger than slot"));
  }
}

// A text that doubles where a number is this one, and is empty elsewhere.
std::string DoublingWhere(const std::string& number, int is) {
  std::string lets = absl::StrCat("let: 's0 = where(", number, " == ", is, ", \"x\", \"\")' ");
  for (int i = 0; i < 40; ++i) absl::StrAppend(&lets, "let: 's", i + 1, " = s", i, " + s", i, "' ");
  return lets;
}

TEST_CASE("a row that takes too much is named, with its stage and the limit") {
  constexpr absl::string_view kTakes = "stage map: pipeline p takes more memory than the limit: ";
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 60);
  for (const int row : {0, 5}) {
    INFO("row " << row);
    const RunResult of_file = RunWithin(
        *Account(16 * kMiB),
        absl::StrCat("stage { tfrecord { files: '", folder / "a",
                     "' } } stage { parse_example { feature { key: 'n' int64 {} } } } stage { map "
                     "{ ",
                     DoublingWhere("n", row),
                     " out: 'l = string_length(s40)' } } stage { batch { batch_size: 8 } }"));
    INFO(of_file.status.ToString());
    CHECK(absl::IsResourceExhausted(of_file.status));
    CHECK(absl::StartsWith(of_file.status.message(), kTakes));
    CHECK(absl::StrContains(of_file.status.message(), "more asked for > 16.0 MiB (the limit) ("));
    CHECK(absl::StrContains(of_file.status.message(),
                            absl::StrCat(" (", folder / "a", ", record ", row, ",")));
    // The second step, and numbers that are no places in it.
    const RunResult of_none = RunWithin(
        *Account(16 * kMiB),
        absl::StrCat("stage { range { start: 92 stop: 120 } } stage { map { ",
                     DoublingWhere("value", 100 + row),
                     " out: 'l = string_length(s40)' } } stage { batch { batch_size: 8 } }"));
    INFO(of_none.status.ToString());
    CHECK(absl::IsResourceExhausted(of_none.status));
    CHECK(absl::StartsWith(of_none.status.message(), kTakes));
    CHECK(absl::EndsWith(
        of_none.status.message(),
        absl::StrCat("more asked for > 16.0 MiB (the limit) (row ", row, " of step 1)")));
  }
}

TEST_CASE("a cache keeps what the limit leaves room for, and the rest is computed again") {
  const std::string spec =
      "stage { range { stop: 8000 } } stage { map { out: 'v = arange(1000) + value' } } stage { "
      "cache "
      "{} } stage { map { out: 'm = sum(v)' } } stage { batch { batch_size: 50 } } stage { repeat "
      "{ "
      "count: 3 } }";
  const RunResult whole = RunText(spec);
  REQUIRE(whole.batches.size() == 480);
  const auto account = Account(64 * kMiB);
  const RunResult within = RunWithin(*account, spec);
  INFO(within.status.ToString());
  CHECK(within.status.ok());
  CHECK(within.batches == whole.batches);
  const auto cache = std::find_if(within.stats.stages.begin(), within.stats.stages.end(),
                                  [](const StageStats& stage) { return stage.name == "cache"; });
  REQUIRE(cache != within.stats.stages.end());
  CHECK(cache->kept.state == "full");
  CHECK(cache->kept.elements > 100);
  CHECK(cache->kept.elements < 8000);
}

TEST_CASE("within the limit nothing differs") {
  ScratchFolder folder;
  for (int shard = 0; shard < 3; ++shard)
    WriteShard(folder / absl::StrCat(shard), 1000 * shard, 500);
  const std::string spec = absl::StrCat("stage { tfrecord { files: '", folder / "?",
                                        "' cycle_length: 3 } } stage { shuffle { buffer_size: 300 "
                                        "seed: 9 } } stage { parse_example { "
                                        "feature { key: 'n' int64 {} } } } stage { filter { "
                                        "predicate: 'n % 7 != 0' } } stage { shuffle "
                                        "{ buffer_size: 100 seed: 2 } } stage { batch { "
                                        "batch_size: 20 } } stage { repeat { count: 2 } }");
  const RunResult free = RunText(spec);
  const auto account = Account(64 * kMiB);
  CHECK(RunWithin(*account, spec).batches == free.batches);
  CHECK(account->taken() == 0);
}

}  // namespace
}  // namespace penstock::test
