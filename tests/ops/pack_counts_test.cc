// `pack` by an index of tokens: the same sequences as without one, from any cursor of either, for any number of workers and hosts; and what is said where
// an index cannot be, is missing, or does not hold.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "io/record/token_counts.h"
#include "server/engine/plan/count_index.h"
#include "server/engine/plan/plan_builder.h"
#include "server/engine/run/token_indexer.h"
#include "tests/hosts/joined_hosts.h"
#include "tests/ops/contract_files.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

using SharedPlan = std::shared_ptr<const Plan>;

SharedPlan MustPlan(const std::string& text, World world = {}) {
  v1::PipelineSpec spec;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  absl::StatusOr<SharedPlan> plan = MakePlan(spec, LocalFileSystem(), world);
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  return *plan;
}

// What IndexTokens() told last of each file.
using Told = std::map<std::string, TokenIndexProgress>;

absl::Status Index(const std::string& text, Told* told = nullptr, uint32_t workers = 3) {
  return IndexTokens(*MustPlan(text), workers, [told](const TokenIndexProgress& progress) {
    if (told != nullptr) (*told)[progress.path] = progress;
    return true;
  });
}

bool GoesByCounts(const Plan& plan) {
  return absl::StrContains(plan.Explain(), "pack: packs by the index of tokens");
}

// Removes all indices of tokens of a folder.
void Forget(const ScratchFolder& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (absl::StrContains(entry.path().filename().string(), ".tokens-"))
      std::filesystem::remove(entry.path());
  }
}

// Sequences of fixed size, so that hosts compute only their own.
constexpr const char* kPipelines[] = {
    "$LISTS | pack { sequence_length: 7 tokens: 'ints' end_id: -1 segment_ids: true positions: "
    "true "
    "window: 20 } | batch { batch_size: 4 } | repeat { count: 2 }",
    "tfrecord { files: 'FOLDER/lists-*.tfrecord' } | shuffle { global: true seed: 3 } | "
    "parse_example { feature { key: 'ints' int64 { variable_length: true } } } | pack { "
    "sequence_length: 16 tokens: 'ints' method: "
    "'best_fit' window: 40 } | batch { batch_size: 8 } | repeat { count: 3 }",
    "$LISTS | shuffle { buffer_size: 30 seed: 1 } | pack { sequence_length: 9 tokens: 'ints' "
    "method: 'first_fit_decreasing' window: 70 max_documents: 5 cu_seqlens: true loss_mask: true } "
    "| shuffle { buffer_size: 9 seed: 2 } | batch { batch_size: 8 } | repeat { count: 2 }",
    "$LISTS | take { count: 60 } | repeat { count: 2 } | shard { num_shards: 2 index: 1 } | pack { "
    "sequence_length: 3 tokens: 'ints' split_documents: false window: 9 } | batch { batch_size: 8 "
    "drop_remainder: true }",
    // Documents of many sequences.
    "$SHARDS | $PARSE | map { out: 't = int32(arange(n % 97)) + int32(n)' } | pack { "
    "sequence_length: 5 window: 33 loss_mask: true } | map { out: 't = t' out: 'drawn = "
    "random_uniform([2], seed=3)' } | batch { batch_size: 8 } | repeat { count: 2 }",
    // Answers, and documents that do not fit.
    "$LISTS | map { out: 'ints = ints' out: 'begin = shape(ints)[0] // 2' } | pack { "
    "sequence_length: 4 tokens: 'ints' long_documents: 'error' loss_mask: true answer_begin: "
    "'begin' window: 25 } | ignore_errors {} | batch { batch_size: 8 } | repeat { count: 2 }",
    "$LISTS | map { out: 'ints = ints' out: 'weight = float32(ints) * 0.5' } | pack { "
    "sequence_length: 11 tokens: 'ints' end_id: 7 loss_mask: true mask: 'weight' long_documents: "
    "'truncate' window: 8 } | batch { batch_size: 8 }",
    // Damage.
    "$HURT | $PARSE | map { out: 't = arange(n % 13)' } | pack { sequence_length: 10 window: 12 } "
    "| "
    "batch { batch_size: 8 } | repeat { count: 2 }",
    "$DOCUMENTS | $DECODE | pack { sequence_length: 6 tokens: 'l' window: 30 } | batch { "
    "batch_size: "
    "8 } | repeat { count: 2 }",
};

constexpr uint64_t kMostSteps = 40;

TEST_CASE("pack by counts: the same sequences with and without, from any cursor of either") {
  for (const char* const text : kPipelines) {
    INFO(text);
    ContractFiles files;
    const std::string spec = files.Spec(text);
    const SharedPlan without = MustPlan(spec);
    CHECK_FALSE(GoesByCounts(*without));
    CHECK(absl::StrContains(without->Explain(), "`penstock index --tokens SPEC` spares that"));
    const RunResult whole = RunPlan(without, {.max_steps = kMostSteps});
    REQUIRE(whole.batches.size() > 3);
    const absl::Status indexed = Index(spec);
    INFO(indexed.ToString());
    REQUIRE(indexed.ok());
    const SharedPlan by_counts = MustPlan(spec);
    REQUIRE(GoesByCounts(*by_counts));
    for (const int workers : {1, 2, 8}) {
      const RunResult run = RunPlan(by_counts, {.workers = workers, .max_steps = kMostSteps});
      INFO(run.status.ToString());
      CHECK(run.batches == whole.batches);
      CHECK(run.status == whole.status);
      CHECK(run.stats.skipped == whole.stats.skipped);
      REQUIRE(run.batches.size() == whole.batches.size());
      for (size_t step = 0; step + 1 < whole.batches.size(); step += workers == 1 ? 3 : 11) {
        INFO(step);
        const uint64_t left = whole.batches.size() - step - 1;
        for (const bool of_counts : {false, true}) {
          INFO(of_counts);
          const std::string& cursor = (of_counts ? run : whole).batches[step].info.cursor;
          CHECK(cursor.size() <= 1024);
          for (const SharedPlan& plan : {without, by_counts}) {
            const RunResult tail =
                RunPlan(plan, {.workers = workers, .max_steps = left, .cursor = cursor});
            INFO(tail.status.ToString());
            REQUIRE(tail.batches.size() == left);
            for (size_t i = 0; i < left; ++i) {
              INFO(i);
              REQUIRE(tail.batches[i] == whole.batches[step + 1 + i]);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("pack by counts: of many files, whose record indices come a part at a time") {
  const ScratchFolder folder;
  for (int file = 0; file < 300; ++file) {
    std::ofstream lines(folder / absl::StrCat("part-", 1000 + file, ".txt"));
    for (int line = 0; line < 3; ++line) lines << 100 * file + line << "\n";
  }
  const std::string spec = absl::StrCat(
      "stage { text_line { files: '", folder / "part-*.txt",
      "' cycle_length: 7 } } stage { map { out: 't = int32(arange(string_to_number(value, "
      "\"int64\") % 23))' "
      "} } "
      "stage { pack { sequence_length: 9 window: 100 } } stage { batch { batch_size: 4 } }");
  const RunResult whole = RunPlan(MustPlan(spec), {});
  INFO(whole.status.ToString());
  REQUIRE(whole.batches.size() > 100);
  REQUIRE(Index(spec).ok());
  // Record indices are made anew.
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const std::string name = entry.path().filename().string();
    if (absl::EndsWith(name, kIndexSuffix) && !absl::StrContains(name, ".tokens-"))
      std::filesystem::remove(entry.path());
  }
  for (const int workers : {1, 8}) {
    const SharedPlan by_counts = MustPlan(spec);
    REQUIRE(GoesByCounts(*by_counts));
    const RunResult run = RunPlan(by_counts, {.workers = workers});
    INFO(run.status.ToString());
    CHECK(run.batches == whole.batches);
  }
}

TEST_CASE("pack by counts: resuming is a matter of seeking") {
  ContractFiles files;
  const std::string spec = files.Spec(
      "tfrecord { files: 'FOLDER/lists-*.tfrecord' } | shuffle { global: true seed: 3 } | "
      "parse_example { feature { key: 'ints' int64 { variable_length: true } } } | pack { "
      "sequence_length: 16 tokens: 'ints' } | "
      "batch { batch_size: 2 }");
  CHECK(absl::StartsWith(MustPlan(spec)->DescribeCursor(), "replay data"));
  REQUIRE(Index(spec).ok());
  CHECK(absl::StartsWith(MustPlan(spec)->DescribeCursor(), "seek"));
}

TEST_CASE("pack by counts: the rows of any number of hosts, of which each computes its own") {
  for (const char* const text : kPipelines) {
    INFO(text);
    ContractFiles files;
    const std::string spec = files.Spec(text);
    REQUIRE(Index(spec).ok());
    const SharedPlan alone = MustPlan(spec);
    const RunResult whole = RunPlan(alone, {.max_steps = kMostSteps});
    for (const uint32_t hosts : {1, 2, 3, 5, 8}) {
      if (alone->batch_rows() < hosts) continue;
      INFO(hosts);
      std::vector<RunResult> all;
      for (uint32_t host = 0; host < hosts; ++host)
        all.push_back(RunPlan(MustPlan(spec, {hosts, host}), {.max_steps = kMostSteps}));
      for (const RunResult& host : all) REQUIRE(host.batches.size() == whole.batches.size());
      for (size_t step = 0; step < whole.batches.size(); ++step) {
        std::vector<const Batch*> parts;
        for (const RunResult& host : all) parts.push_back(&host.batches[step]);
        REQUIRE(JoinedDifference(alone->tensors(), parts, whole.batches[step]) == "");
      }
    }
  }
}

TEST_CASE("pack by counts: a host computes the documents of its own sequences, else all") {
  ContractFiles files;
  const std::string spec = files.Spec(
      "tfrecord { files: 'FOLDER/big.tfrecord' } | $PARSE | map { out: 't = "
      "int32(arange(n % 5)) + int32(n)' } | pack { sequence_length: 4 split_documents: false } | "
      "batch { batch_size: 16 }");
  const World last{8, 7};
  const auto made = [](const RunResult& run) {
    REQUIRE(run.finished);
    for (const auto& stage : run.stats.stages) {
      if (stage.name == "map") return stage.elements;
    }
    return uint64_t{0};
  };
  const SharedPlan without = MustPlan(spec, last);
  CHECK(absl::StrContains(without->Explain(),
                          "world: values decide the order: each host computes all elements"));
  CHECK(made(RunPlan(without)) >= 3000);
  REQUIRE(Index(spec).ok());
  const SharedPlan by_counts = MustPlan(spec, last);
  CHECK_FALSE(absl::StrContains(by_counts->Explain(), "values decide the order"));
  CHECK(made(RunPlan(by_counts)) < 600);
}

TEST_CASE("pack by counts: what is counted is told, and what is there is not counted again") {
  ContractFiles files;
  const std::string spec = files.Spec(
      "$LISTS | map { out: 'ints = ints' } | pack { sequence_length: 4 long_documents: 'error' } | "
      "ignore_errors {} | batch { batch_size: 2 }");
  Told told;
  REQUIRE(Index(spec, &told).ok());
  REQUIRE(told.size() == 3);
  // 20 records of 0 to 6 tokens, of which those of 5 and 6 do not fit.
  const TokenIndexProgress& first = told[files.folder / "lists-0.tfrecord"];
  CHECK(first.stage == "pack");
  CHECK(first.documents == 20);
  CHECK(first.left_out == 5);
  CHECK(first.tokens == 30);
  CHECK(first.bytes_done == first.bytes);
  CHECK(first.bytes == std::filesystem::file_size(first.path));
  CHECK(std::filesystem::exists(first.index_path));
  CHECK_FALSE(first.was_there);
  // Without the op that leaves them out the index is none.
  const std::string strict = files.Spec(
      "$LISTS | map { out: 'ints = ints' } | pack { sequence_length: 4 long_documents: 'error' } | "
      "batch { batch_size: 2 }");
  CHECK(absl::StrContains(MustPlan(strict)->Explain(),
                          "its index of tokens leaves out 5 documents, and no ignore_errors "
                          "follows"));
  Told again;
  REQUIRE(Index(spec, &again).ok());
  for (const auto& [path, progress] : again) CHECK(progress.was_there);
}

TEST_CASE("pack by counts: another tokenizer, option or file is another index") {
  ContractFiles files;
  const auto spec = [&](const std::string& options, const std::string& expression = "ints") {
    return files.Spec(absl::StrCat("$LISTS | map { out: 'ints = ", expression,
                                   "' } | pack { sequence_length: 6 ", options,
                                   " } | batch { batch_size: 2 }"));
  };
  REQUIRE(Index(spec("")).ok());
  CHECK(GoesByCounts(*MustPlan(spec(""))));
  // These change no count.
  for (const char* const options :
       {"method: 'best_fit'", "pad_id: 9", "window: 7", "segment_ids: true",
        "long_documents: 'truncate'", "loss_mask: true"}) {
    INFO(options);
    CHECK(GoesByCounts(*MustPlan(spec(options))));
  }
  // These may.
  CHECK_FALSE(GoesByCounts(*MustPlan(spec("end_id: 5"))));
  CHECK_FALSE(GoesByCounts(*MustPlan(spec("long_documents: 'error'"))));
  CHECK_FALSE(GoesByCounts(*MustPlan(spec("", "ints[:2]"))));
  WriteLists(files.folder / "lists-1.tfrecord", 5, 20);
  const SharedPlan changed = MustPlan(spec(""));
  CHECK_FALSE(GoesByCounts(*changed));
  CHECK(absl::StrContains(changed->Explain(), "1 files in front of it have one"));
}

// Puts an index with other counts in the place of each.
void Forge(const std::string& text, const ScratchFolder& folder, uint32_t add) {
  v1::PipelineSpec spec;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  absl::StatusOr<BuiltPlan> built = PlanBuilder(spec, LocalFileSystem()).Build();
  REQUIRE(built.ok());
  const std::vector<CountedStage> counted = FindCounted(*built);
  REQUIRE(counted.size() == 1);
  FolderIndexStore store(LocalFileSystem(), "");
  for (uint32_t i = 0; i < counted[0].files.count; ++i) {
    const std::string& path = built->files.manifest()[counted[0].files.first + i].path;
    auto data = LocalFileSystem().Open(path);
    REQUIRE(data.ok());
    auto counts = LoadTokenCounts(**data, counted[0].key, store);
    REQUIRE(counts.ok());
    std::vector<uint32_t> forged;
    for (uint64_t n = 0; n < (*counts)->size(); ++n) forged.push_back((**counts)[n] + add);
    if (add == 0) forged.pop_back();
    REQUIRE(KeepTokenCounts(**data, counted[0].key, TokenCounts(forged), store).ok());
  }
}

TEST_CASE("pack by counts: a document of another length is an error that names it") {
  for (const bool is_ignored : {false, true}) {
    ContractFiles files;
    const std::string spec = files.Spec(
        absl::StrCat("$LISTS | pack { sequence_length: 6 tokens: 'ints' }",
                     is_ignored ? " | ignore_errors {}" : "", " | batch { batch_size: 2 }"));
    REQUIRE(Index(spec).ok());
    Forge(spec, files.folder, 1);
    const RunResult run = RunPlan(MustPlan(spec));
    INFO(run.status.ToString());
    CHECK(run.batches.empty());
    CHECK(run.status.code() == absl::StatusCode::kFailedPrecondition);
    CHECK(absl::StrContains(
        run.status.message(),
        "stage pack: expected a document of 1 tokens, as its index of tokens says, found 0: make "
        "another one by `penstock index --tokens SPEC`, or delete it, and create the pipeline anew "
        "("));
    CHECK(absl::EndsWith(run.status.message(), "lists-0.tfrecord, record 0, offset 0)"));
  }
}

TEST_CASE("pack by counts: an index of other records, or that has gone, ends the pipeline") {
  ContractFiles files;
  const std::string spec =
      files.Spec("$LISTS | pack { sequence_length: 6 tokens: 'ints' } | batch { batch_size: 2 }");
  REQUIRE(Index(spec).ok());
  Forge(spec, files.folder, 0);
  const RunResult fewer = RunPlan(MustPlan(spec));
  CHECK(fewer.status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(absl::StrContains(fewer.status.message(), "it is of 19 records, and the file has 20"));
  Forget(files.folder);
  REQUIRE(Index(spec).ok());
  const SharedPlan plan = MustPlan(spec);
  Forget(files.folder);
  const RunResult gone = RunPlan(plan);
  CHECK(gone.status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(absl::StrContains(gone.status.message(), "no index of tokens"));
}

TEST_CASE("pack by counts: where there can be no index, the reason is told") {
  const std::pair<const char*, const char*> kCases[] = {
      {"$RANGE | map { out: 't = arange(value % 3)' } | pack { sequence_length: 4 }",
       "its source reads no files of records"},
      {"$NESTED_ARROW | pack { sequence_length: 4 tokens: 'l' }", "its source counts its elements"},
      {"$LISTS | filter { predicate: 'shape(ints)[0] > 1' } | pack { sequence_length: 4 tokens: "
       "'ints' }",
       "values decide the order in front of it (filter)"},
      {"$LISTS | map { out: 't = ints + random_uniform(minval=0, maxval=3, dtype=\"int64\", "
       "seed=1)' } | pack { "
       "sequence_length: 4 }",
       "stage map draws by chance"},
      {"$GZIP | $PARSE | map { out: 't = arange(n % 3)' } | pack { sequence_length: 4 }",
       "have no index (compressed ones have none)"},
      {"$CUT_SHORT | $PARSE | map { out: 't = arange(n % 3)' } | pack { sequence_length: 4 }",
       "its source leaves out the rest of a damaged file"},
      {"zip { (| $LISTS |) (| $RANGE |) } | map { out: 't = feature(\"0/ints\")' } | pack { "
       "sequence_length: 4 "
       "}",
       "its elements come from several sources"},
  };
  for (const auto& [text, reason] : kCases) {
    INFO(text);
    ContractFiles files;
    v1::PipelineSpec spec;
    const std::string stages = files.Spec(absl::StrCat(text, " | batch { batch_size: 2 }"));
    REQUIRE(google::protobuf::TextFormat::ParseFromString(stages, &spec));
    const auto plan = MakePlan(spec, LocalFileSystem());
    INFO(plan.status().ToString());
    if (!plan.ok()) {
      CHECK(plan.ok());
      continue;
    }
    INFO((*plan)->Explain());
    CHECK(absl::StrContains((*plan)->Explain(),
                            absl::StrCat("an index of tokens cannot be: ", reason)) ==
          !absl::StrContains(reason, "(compressed"));
    CHECK(absl::StrContains((*plan)->Explain(), reason));
    const absl::Status status = Index(stages);
    CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
    CHECK(absl::StrContains(status.message(), reason));
  }
  ContractFiles files;
  const absl::Status none = Index(files.Spec("$RANGE | batch { batch_size: 2 }"));
  CHECK(none.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(absl::StrContains(none.message(), "expected a `pack`"));
}

TEST_CASE("pack by counts: a document that fails ends the counting, with its address") {
  ContractFiles files;
  const std::string spec = files.Spec(
      "$LISTS | pack { sequence_length: 4 tokens: 'ints' long_documents: 'error' } | batch { "
      "batch_size: 2 }");
  for (const uint32_t workers : {1, 3}) {
    const absl::Status status = Index(spec, nullptr, workers);
    INFO(status.ToString());
    CHECK(absl::IsDataLoss(status));
    CHECK(absl::StrContains(status.message(), "expected a document of at most 4 tokens, found 5"));
    CHECK(absl::StrContains(status.message(), "lists-0.tfrecord, record 5, offset "));
  }
}

TEST_CASE("pack by counts: whoever does not want the index ends the counting") {
  ContractFiles files;
  const std::string spec =
      files.Spec("$LISTS | pack { sequence_length: 4 tokens: 'ints' } | batch { batch_size: 2 }");
  const absl::Status status =
      IndexTokens(*MustPlan(spec), 2, [](const TokenIndexProgress&) { return false; });
  CHECK(absl::IsCancelled(status));
  CHECK_FALSE(GoesByCounts(*MustPlan(spec)));
  CHECK(absl::IsInvalidArgument(
      IndexTokens(*MustPlan(spec), 257, [](const TokenIndexProgress&) { return true; })));
}

}  // namespace
}  // namespace penstock::test
