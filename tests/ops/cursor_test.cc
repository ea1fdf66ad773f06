// What a cursor belongs to: the bytes and the streams that are refused, and those that are not.
#include "server/engine/plan/cursor.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "io/record/record_index.h"
#include "io/record/tfrecord_access.h"
#include "tests/ops/contract_files.h"
#include "tests/support/arrays.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/shards.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

std::shared_ptr<const Plan> MustPlan(const std::string& spec) {
  auto plan = PlanText(spec);
  INFO(spec << plan.status().ToString());
  REQUIRE(plan.ok());
  return *plan;
}

// The cursor behind step `step` of a pipeline.
std::string CursorOf(const std::string& spec, size_t step) {
  const RunResult result = RunPlan(MustPlan(spec), {.max_steps = step + 1});
  REQUIRE(result.batches.size() == step + 1);
  return result.batches[step].info.cursor;
}

absl::Status Refused(const std::string& spec, const std::string& cursor) {
  return TryRunPlan(MustPlan(spec), {.max_steps = 1, .cursor = cursor}).status();
}

constexpr char kBase[] =
    "$TURNS | shuffle { buffer_size: 10 seed: 1 } | $PARSE | map { out: 'm = n * 2' } "
    "| repeat { count: 3 } | take { count: 100 } | batch { batch_size: 7 }";

TEST_CASE("Bytes that are no whole cursor are refused") {
  ContractFiles files;
  const std::string spec = files.Spec(kBase);
  const std::string cursor = CursorOf(spec, 2);
  const v1::Fingerprint fingerprint = *FingerprintOf(*MustPlan(spec));
  REQUIRE(ReadCursor(cursor, fingerprint).ok());
  CHECK(ReadCursor(cursor, fingerprint)->step == 3);
  const auto code = [&](const std::string& bytes) {
    return ReadCursor(bytes, fingerprint).status().code();
  };
  for (size_t size = 0; size < cursor.size(); ++size)
    CHECK(code(cursor.substr(0, size)) == absl::StatusCode::kInvalidArgument);
  for (size_t bit = 0; bit < cursor.size() * 8; ++bit) {
    std::string flipped = cursor;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    CHECK(code(flipped) == absl::StatusCode::kInvalidArgument);
  }
  std::mt19937_64 dice(1);
  for (const size_t size : {1, 4, 8, 9, 40, 1024, 1025, 100000}) {
    std::string garbage(size, '\0');
    CHECK(code(garbage) == absl::StatusCode::kInvalidArgument);
    for (char& byte : garbage) byte = static_cast<char>(dice());
    CHECK(code(garbage) == absl::StatusCode::kInvalidArgument);
    CHECK(code("PNSC" + garbage) == absl::StatusCode::kInvalidArgument);
    CHECK(code(cursor + garbage) == absl::StatusCode::kInvalidArgument);
  }
}

TEST_CASE("A cursor whose counters are not the pipeline's is refused") {
  ContractFiles files;
  const std::string spec = files.Spec(kBase);
  const auto plan = MustPlan(spec);
  const v1::Fingerprint fingerprint = *FingerprintOf(*plan);
  const ResumePoint point = *ReadCursor(CursorOf(spec, 2), fingerprint);
  for (const bool more : {false, true}) {
    std::vector<uint64_t> counters = point.position.counters();
    more ? counters.push_back(0) : counters.pop_back();
    const std::string forged = *CursorMaker(fingerprint).Make(point.step, Position(counters));
    CHECK(TryRunPlan(plan, {.cursor = forged}).status().code() ==
          absl::StatusCode::kInvalidArgument);
  }
}

// Whoever can write a checksum can write any counter: the stream then ends or fails, and that is
// all.
TEST_CASE("No counter of a forged cursor makes a pipeline crash or hang") {
  ContractFiles files;
  for (const char* const text : {kBase,
                                 "$RANGE | shuffle { buffer_size: 10 seed: 1 } | repeat { count: 3 "
                                 "} | batch { batch_size: 7 }",
                                 "$RANGE | batch { batch_size: 4 } | repeat { count: 3 }",
                                 "$RANGE | batch { batch_size: 4 } | rebatch { batch_size: 3 "
                                 "batch_size: 2 } | repeat { count: 3 }",
                                 "$TURNS | batch { batch_size: 4 } | repeat {}",
                                 "$BIG | skip { count: 20 } | shard { num_shards: 3 index: 1 } | "
                                 "enumerate {} | batch { batch_size: 7 }",
                                 "concatenate { (| $SHARDS |) (| $LINES |) } | zip { (| $GZIP |) } "
                                 "| repeat {} | batch { batch_size: 7 }",
                                 "range { stop: 300 } | filter { predicate: 'value % 2 == 0' } | "
                                 "repeat { count: 3 } | batch { batch_size: 7 }",
                                 "range { stop: 90 } | batch { batch_size: 5 } | interleave { (| "
                                 "window_part {} | unbatch {} |) cycle_length: 3 } | batch { "
                                 "batch_size: 10 }"}) {
    const std::string spec = files.Spec(text);
    const auto plan = MustPlan(spec);
    const v1::Fingerprint fingerprint = *FingerprintOf(*plan);
    const ResumePoint point = *ReadCursor(CursorOf(spec, 2), fingerprint);
    for (size_t i = 0; i < point.position.counters().size(); ++i) {
      for (const uint64_t value :
           {uint64_t{0}, uint64_t{1}, uint64_t{17}, uint64_t{1} << 31, uint64_t{1} << 32,
            uint64_t{1} << 63, ~uint64_t{2}, ~uint64_t{0}}) {
        std::vector<uint64_t> counters = point.position.counters();
        counters[i] = value;
        INFO(text << "\ncounter " << i << " is " << value << ", was "
                  << point.position.counters()[i]);
        const std::string forged = *CursorMaker(fingerprint).Make(point.step, Position(counters));
        const auto result = TryRunPlan(plan, {.max_steps = 3, .cursor = forged});
        CHECK((!result.ok() || result->finished || result->batches.size() == 3));
      }
    }
  }
}

TEST_CASE("A cursor behind more of a block than values leave of it is an error, and no end") {
  const auto plan = MustPlan(
      "name: 'even' stage { range { stop: 300 } } stage { filter { predicate: 'value % 2 == 0' } } "
      "stage { batch { batch_size: 10 } }");
  const v1::Fingerprint fingerprint = *FingerprintOf(*plan);
  const RunResult whole = RunPlan(plan);
  // Of a block of 64 elements 32 are left; of the last one, which the end cuts short, 22.
  const struct {
    size_t step;
    uint64_t taken;
    uint64_t has;
  } places[] = {{4, 18, 32}, {13, 12, 22}};
  for (const auto& [step, taken, has] : places) {
    CAPTURE(step);
    REQUIRE(whole.batches.size() > step);
    const ResumePoint point = *ReadCursor(whole.batches[step].info.cursor, fingerprint);
    std::vector<uint64_t> counters = point.position.counters();
    REQUIRE(counters[0] == taken);
    counters[0] = has + 1;
    const RunResult rest =
        RunPlan(plan, {.cursor = *CursorMaker(fingerprint).Make(point.step, Position(counters))});
    CHECK(rest.batches.empty());
    CHECK(absl::IsFailedPrecondition(rest.status));
    CHECK(absl::StrContains(rest.status.message(),
                            absl::StrCat("after element ", has + 1, " of a block that has ", has)));
  }
}

TEST_CASE("The way to a place that is never reached can be given up") {
  ContractFiles files;
  const auto plan = MustPlan(
      files.Spec("list_files { files: 'FOLDER/shard-*.tfrecord' seed: 3 } | repeat {} | "
                 "interleave { (| tfrecord {} |) cycle_length: 3 } | batch { batch_size: 7 }"));
  const v1::Fingerprint fingerprint = *FingerprintOf(*plan);
  const std::string forged = *CursorMaker(fingerprint).Make(3, Position({0, uint64_t{1} << 62}));
  // Stopped before it has begun, or on the way.
  for (int i = 0; i < 20; ++i)
    CHECK(RunPlan(plan, {.max_steps = 0, .cursor = forged}).batches.empty());
}

TEST_CASE("What a cache keeps far behind the beginning takes no room for what is in front of it") {
  const auto plan = MustPlan(Stages("counter {} | cache {} | batch { batch_size: 7 }"));
  const v1::Fingerprint fingerprint = *FingerprintOf(*plan);
  for (const uint64_t first : {uint64_t{1} << 31, uint64_t{1} << 40}) {
    const std::string forged = *CursorMaker(fingerprint).Make(3, Position({first}));
    const RunResult run = RunPlan(plan, {.max_steps = 3, .cursor = forged});
    REQUIRE(run.batches.size() == 3);
    CHECK(run.batches[2].As<int64_t>(0).front() == static_cast<int64_t>(first) + 14);
  }
}

TEST_CASE("A cursor of another spec is refused with what differs") {
  ContractFiles files;
  const std::string cursor = CursorOf(files.Spec(kBase), 2);
  struct Case {
    const char* from;
    const char* to;
    const char* reason;
  };
  const Case cases[] = {
      {"seed: 1", "seed: 2", "its seeds differ"},
      {"batch_size: 7", "batch_size: 8", "its batch size is 7, this pipeline's 8"},
      {"buffer_size: 10", "buffer_size: 11", "order ops or their options differ"},
      {"seed: 1", "seed: 1 reshuffle_each_iteration: false", "order ops or their options differ"},
      {"count: 3", "count: 4", "order ops or their options differ"},
      {"take { count: 100 }", "take { count: 101 }", "order ops or their options differ"},
      {"take { count: 100 }", "skip { count: 100 }", "order ops or their options differ"},
      {"| take { count: 100 } ", "", "order ops or their options differ"},
      {"batch_size: 7", "batch_size: 7 drop_remainder: true", "order ops or their options differ"},
      {"| batch", "| shard { num_shards: 1 index: 0 } | batch",
       "order ops or their options differ"},
      {"| repeat { count: 3 } | take { count: 100 }", "| take { count: 100 } | repeat { count: 3 }",
       "order ops or their options differ"},
      {"$TURNS", "$SHARDS", "order ops or their options differ"},
      {"n * 2", "n * 3", "work ops"},
      {"| map { out: 'm = n * 2' } ", "", "work ops"},
      {"$TURNS",
       "tfrecord { files: 'FOLDER/shard-0.tfrecord' files: 'FOLDER/shard-2.tfrecord' cycle_length: "
       "3 block_length: 2 }",
       "other names, or there are more or fewer"},
  };
  for (const Case& c : cases) {
    std::string text = kBase;
    text.replace(text.find(c.from), std::string(c.from).size(), c.to);
    INFO(text);
    const absl::Status status = Refused(files.Spec(text), cursor);
    CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
    INFO(status.ToString());
    CHECK(absl::StrContains(status.message(), "the cursor belongs to another stream: "));
    CHECK(absl::StrContains(status.message(), c.reason));
  }
  // Sizes of batches that are not the stream's.
  struct Pair {
    const char* from;
    const char* to;
  };
  for (const Pair& pair :
       {Pair{"$RANGE | batch { batch_size: 2 } | batch { batch_size: 3 }",
             "$RANGE | batch { batch_size: 4 } | batch { batch_size: 3 }"},
        Pair{"$RANGE | batch { batch_size: 5 } | rebatch { batch_size: 3 batch_size: 1 }",
             "$RANGE | batch { batch_size: 5 } | rebatch { batch_size: 2 batch_size: 3 }"},
        Pair{"$RANGE | batch { batch_size: 4 } | shuffle { buffer_size: 3 seed: 1 }",
             "$RANGE | batch { batch_size: 7 } | shuffle { buffer_size: 3 seed: 1 }"}}) {
    INFO(pair.from);
    const std::string from = files.Spec(pair.from);
    CHECK(Refused(from, CursorOf(from, 1)).ok());
    CHECK(absl::StrContains(Refused(files.Spec(pair.to), CursorOf(from, 1)).message(),
                            "order ops or their options differ"));
  }
  // Without effect on the bytes.
  for (const char* const hint :
       {" | prefetch { buffer_size: 3 }", " | prefetch { buffer_size: 1 }"})
    CHECK(Refused(files.Spec(std::string(kBase) + hint), cursor).ok());
  CHECK(Refused("name: 'other' workers: 3 ring { slots: 9 } " + files.Spec(kBase), cursor).ok());
}

TEST_CASE("A cursor of other work ops is taken where that is allowed, with a notice") {
  ContractFiles files;
  const std::string base =
      "$SHARDS | shuffle { buffer_size: 10 seed: 1 } | $PARSE | map { out: 'm = n * 2' } | batch { "
      "batch_size: 7 }";
  const std::string cursor = CursorOf(files.Spec(base), 2);
  const std::string other = files.Spec(absl::StrReplaceAll(base, {{"n * 2", "n * 3"}}));
  CHECK(Refused(other, cursor).code() == absl::StatusCode::kFailedPrecondition);
  CHECK(absl::StrContains(Refused(other, cursor).message(), "--allow-changed-work"));
  const RunResult rest = RunPlan(MustPlan(other), {.cursor = cursor, .allow_changed_work = true});
  const RunResult whole = RunPlan(MustPlan(other));
  REQUIRE(rest.batches.size() + 3 == whole.batches.size());
  for (size_t i = 0; i < rest.batches.size(); ++i) CHECK(rest.batches[i] == whole.batches[i + 3]);
  const v1::Fingerprint fingerprint = *FingerprintOf(*MustPlan(other));
  CHECK(absl::StrContains(ReadCursor(cursor, fingerprint, ChangedWork::kAllow)->notice,
                          "from step 3 on values differ"));
  // Nothing else may differ.
  const std::string another_seed = files.Spec(absl::StrReplaceAll(base, {{"seed: 1", "seed: 2"}}));
  CHECK(TryRunPlan(MustPlan(another_seed), {.cursor = cursor, .allow_changed_work = true})
            .status()
            .code() == absl::StatusCode::kFailedPrecondition);
}

// A plan's fingerprint as it would be where the op of a stage meant something else.
v1::Fingerprint Raised(v1::Fingerprint fingerprint, const std::string& stage, uint32_t number) {
  for (v1::StageMeaning& one : *fingerprint.mutable_meanings()->mutable_stage()) {
    if (one.name() != stage) continue;
    one.set_number(number);
    one.set_change("it counts from one");
    return fingerprint;
  }
  FAIL("no stage " << stage);
  return fingerprint;
}

TEST_CASE("A cursor of other code of Python functions is taken, with a notice") {
  const v1::Fingerprint none =
      *FingerprintOf(*MustPlan(Stages("range { stop: 9 } | batch { batch_size: 2 }")));
  CHECK(none.code() == 0);
  v1::Fingerprint first = none, second = none;
  first.set_code(5);
  second.set_code(6);
  const std::string cursor = *CursorMaker(first).Make(3, Position({1}));
  CHECK(CodeOf(cursor) == 5);
  for (const ChangedWork changed : {ChangedWork::kRefuse, ChangedWork::kAllow}) {
    CHECK(ReadCursor(cursor, second, changed)->notice ==
          "the code of its Python functions changed since the cursor was made: from step 3 on "
          "values may differ from those of its stream");
    CHECK(ReadCursor(cursor, first, changed)->notice.empty());
    // Of a release that did not say it.
    CHECK(ReadCursor(cursor, none, changed)->notice.empty());
    CHECK(ReadCursor(*CursorMaker(none).Make(3, Position({1})), first, changed)->notice.empty());
  }
  CHECK(CodeOf("no cursor") == 0);
}

TEST_CASE("A cursor by another meaning of an op is refused, whatever is allowed") {
  ContractFiles files;
  const v1::Fingerprint now = *FingerprintOf(*MustPlan(files.Spec(kBase)));
  v1::Fingerprint older = now;
  older.clear_meanings();
  const Position position({1, 2, 3});
  // An order op, and a work op.
  for (const std::string stage : {"shuffle", "map"}) {
    INFO(stage);
    const v1::Fingerprint raised = Raised(now, stage, 2);
    for (const v1::Fingerprint& made : {now, older}) {
      const std::string cursor = *CursorMaker(made).Make(3, position);
      CHECK(ReadCursor(cursor, now).ok());
      for (const ChangedWork changed : {ChangedWork::kRefuse, ChangedWork::kAllow}) {
        const absl::Status status = ReadCursor(cursor, raised, changed).status();
        INFO(status.ToString());
        CHECK(absl::IsFailedPrecondition(status));
        CHECK(absl::StrContains(
            status.message(),
            absl::StrCat("stage ", stage, ": the op ", stage,
                         " means something else in this release (it counts from one): expected "
                         "meaning 2, found 1; go on with the release that made the cursor")));
      }
    }
    const std::string cursor = *CursorMaker(raised).Make(3, position);
    CHECK(ReadCursor(cursor, raised).ok());
    CHECK(absl::StrContains(ReadCursor(cursor, now, ChangedWork::kAllow).status().message(),
                            "expected meaning 1, found 2"));
    CHECK(absl::StrContains(ReadCursor(cursor, Raised(now, stage, 3)).status().message(),
                            "expected meaning 3, found 2"));
    // What a stage costs.
    CHECK(cursor.size() == CursorMaker(now).Make(3, position)->size() + 6);
    // A hint in front of it changes nothing.
    const v1::Fingerprint hinted = *FingerprintOf(*MustPlan(
        files.Spec(absl::StrReplaceAll(kBase, {{"$TURNS |", "$TURNS | prefetch {} |"}}))));
    CHECK(ReadCursor(cursor, Raised(hinted, stage, 2)).ok());
  }
  CHECK(CursorMaker(now).Make(3, position)->size() ==
        CursorMaker(older).Make(3, position)->size() + 2);
}

TEST_CASE("Where other work is allowed, it may mean what it does, but not in an older cursor") {
  ContractFiles files;
  const v1::Fingerprint made = *FingerprintOf(*MustPlan(files.Spec(kBase)));
  const v1::Fingerprint other =
      *FingerprintOf(*MustPlan(files.Spec(absl::StrReplaceAll(kBase, {{"n * 2", "n * 3"}}))));
  const auto status = [](const v1::Fingerprint& of, const v1::Fingerprint& expected) {
    return ReadCursor(*CursorMaker(of).Make(3, Position({1})), expected, ChangedWork::kAllow)
        .status();
  };
  CHECK(status(made, Raised(other, "map", 2)).ok());
  CHECK(status(Raised(made, "map", 2), other).ok());
  CHECK(absl::StrContains(status(made, Raised(other, "shuffle", 2)).message(), "stage shuffle:"));
  v1::Fingerprint older = made;
  older.clear_meanings();
  CHECK(status(older, other).ok());
  CHECK(absl::StrContains(status(older, Raised(other, "map", 2)).message(), "stage map:"));
}

TEST_CASE("A cursor of files with another number of records is refused, where both are indexed") {
  ScratchFolder folder;
  // Equal sizes and equal ends, and in the middle one long record or two short ones.
  std::string same(6000, 'x');
  const auto write = [&](bool two) {
    std::vector<std::string> records(20, same);
    if (two) {
      records.insert(records.begin() + 10, std::string(2984, 'y'));
      records[11] = std::string(3000, 'z');
    }
    WriteRecords(folder / "a", records);
  };
  const std::string spec = absl::StrCat("stage { tfrecord { files: '", folder / "a",
                                        "' } } stage { batch { batch_size: 2 } }");
  const auto index = [&] {
    const auto file = LocalFileSystem().Open(folder / "a");
    FolderIndexStore store(LocalFileSystem(), "");
    REQUIRE(LoadOrBuildIndex(*file, TfrecordAccess(), store, {}).ok());
  };
  write(false);
  const std::string without = CursorOf(spec, 1);
  index();
  const std::string with = CursorOf(spec, 1);
  CHECK(WithoutCounts(without) == WithoutCounts(with));
  CHECK(without != with);
  CHECK(Refused(spec, without).ok());
  CHECK(Refused(spec, with).ok());
  std::filesystem::remove(IndexPathBeside(folder / "a"));
  CHECK(Refused(spec, with).ok());
  const uintmax_t size = std::filesystem::file_size(folder / "a");
  write(true);
  REQUIRE(std::filesystem::file_size(folder / "a") == size);
  CHECK(Refused(spec, with).ok());  // nobody has counted them
  index();
  CHECK(Refused(spec, without).ok());
  CHECK(Refused(spec, with).code() == absl::StatusCode::kFailedPrecondition);
  CHECK(absl::StrContains(Refused(spec, with).message(), "another number of records"));
}

TEST_CASE("A cursor of another tree of the same stages is refused") {
  ContractFiles files;
  struct Case {
    const char* one;
    const char* other;
  };
  const Case cases[] = {
      {"concatenate { (| range { stop: 50 } |) (| range { stop: 60 } | take { count: 20 } |) } | "
       "batch { batch_size: 4 }",
       "concatenate { (| range { stop: 50 } |) (| range { stop: 60 } |) } | take { count: 20 } | "
       "batch { batch_size: 4 }"},
      {"zip { (| range { stop: 50 } |) (| range { stop: 60 } | skip { count: 20 } |) } | batch { "
       "batch_size: 4 }",
       "zip { (| range { stop: 50 } |) (| range { stop: 60 } |) } | skip { count: 20 } | batch { "
       "batch_size: 4 }"},
      {"range { stop: 50 } | zip { (| range { stop: 60 } |) (| range { stop: 70 } |) } | batch { "
       "batch_size: 4 }",
       "range { stop: 50 } | zip { (| range { stop: 60 } | zip { (| range { stop: 70 } |) } |) } | "
       "batch { batch_size: 4 }"},
      {"zip { (| tfrecord { files: 'FOLDER/shard-2.tfrecord' } |) "
       "(| tfrecord { files: 'FOLDER/shard-4.tfrecord' files: 'FOLDER/shard-6.tfrecord' } |) } | "
       "batch { batch_size: 2 }",
       "zip { (| tfrecord { files: 'FOLDER/shard-2.tfrecord' files: 'FOLDER/shard-4.tfrecord' } |) "
       "(| tfrecord { files: 'FOLDER/shard-6.tfrecord' } |) } | batch { batch_size: 2 }"},
      {"zip { (| $SHARDS | shuffle { buffer_size: 5 seed: 1 } |) (| $SHARDS | shuffle { "
       "buffer_size: 5 seed: 2 } |) } | batch { batch_size: 4 }",
       "zip { (| $SHARDS | shuffle { buffer_size: 5 seed: 2 } |) (| $SHARDS | shuffle { "
       "buffer_size: 5 seed: 1 } |) } | batch { batch_size: 4 }"},
  };
  for (const Case& c : cases) {
    INFO(c.one << "\n" << c.other);
    for (const bool turned : {false, true}) {
      const std::string one = files.Spec(turned ? c.other : c.one);
      const std::string other = files.Spec(turned ? c.one : c.other);
      CHECK(Refused(other, CursorOf(one, 0)).code() == absl::StatusCode::kFailedPrecondition);
      CHECK(Refused(one, CursorOf(one, 0)).ok());
    }
  }
}

TEST_CASE("A cursor of other files is refused, and the same files may lie anywhere") {
  ContractFiles files;
  const std::string spec = files.Spec(kBase);
  const RunResult reference = RunPlan(MustPlan(spec));
  const std::string& cursor = reference.batches[3].info.cursor;
  struct Case {
    const char* reason;  // "": accepted
    std::function<void(const ScratchFolder&)> change;
  };
  const auto edit = [](const ScratchFolder& folder, const char* name, const auto& change) {
    std::string bytes = ReadFile(folder / name);
    change(bytes);
    WriteFile(folder / name, bytes);
  };
  const Case cases[] = {
      {"", [](const ScratchFolder&) {}},
      {"",
       [](const ScratchFolder& folder) {
         using Clock = std::filesystem::file_time_type;
         std::filesystem::last_write_time(folder / "shard-2.tfrecord",
                                          Clock::min() + Clock::duration::max() / 2);
       }},
      {"other names",
       [](const ScratchFolder& folder) {
         std::filesystem::rename(folder / "shard-2.tfrecord", folder / "shard-2b.tfrecord");
       }},
      {"more or fewer",
       [](const ScratchFolder& folder) { std::filesystem::remove(folder / "shard-1.tfrecord"); }},
      {"more or fewer",
       [](const ScratchFolder& folder) { WriteShard(folder / "shard-9.tfrecord", 0, 1); }},
      {"other sizes",
       [](const ScratchFolder& folder) { WriteShard(folder / "shard-4.tfrecord", 400, 41); }},
      {"begin or end with other bytes",
       [&](const ScratchFolder& folder) {
         edit(folder, "shard-4.tfrecord", [](std::string& bytes) { bytes[30] ^= 1; });
       }},
      {"begin or end with other bytes",
       [&](const ScratchFolder& folder) {
         edit(folder, "shard-6.tfrecord", [](std::string& bytes) { bytes.back() ^= 1; });
       }},
      // Two files of equal size change places.
      {"begin or end with other bytes",
       [](const ScratchFolder& folder) {
         std::filesystem::rename(folder / "shard-0.tfrecord", folder / "x");
         std::filesystem::rename(folder / "shard-6.tfrecord", folder / "shard-0.tfrecord");
         std::filesystem::rename(folder / "x", folder / "shard-6.tfrecord");
       }},
  };
  for (const Case& c : cases) {
    ScratchFolder copy;
    for (int i = 0; i < 7; ++i) {
      const std::string name = absl::StrCat("shard-", i, ".tfrecord");
      WriteFile(copy / name, ReadFile(files.folder / name));
    }
    if (std::string(c.reason) == "other sizes" || std::string(c.reason).find("begin") == 0)
      REQUIRE(ReadFile(copy / "shard-0.tfrecord").size() ==
              ReadFile(copy / "shard-6.tfrecord").size());
    c.change(copy);
    std::string moved = spec;
    for (size_t at; (at = moved.find(files.folder.path())) != std::string::npos;)
      moved.replace(at, files.folder.path().size(), copy.path());
    INFO("reason: " << c.reason);
    const auto result = TryRunPlan(MustPlan(moved), {.cursor = cursor});
    INFO(result.status().ToString());
    if (*c.reason != '\0') {
      CHECK(result.status().code() == absl::StatusCode::kFailedPrecondition);
      CHECK(absl::StrContains(result.status().message(), c.reason));
      continue;
    }
    REQUIRE(result.ok());
    CHECK(result->batches ==
          std::vector<Batch>(reference.batches.begin() + 4, reference.batches.end()));
  }
}

TEST_CASE("A cursor of another process's array is one of any with its values") {
  ContractFiles files;
  const auto spec_of = [&](int value) {
    const std::string path = files.folder / "array.npy";
    WriteFile(path, NpyHeaderText("|i1", "(9,)") + std::string(9, static_cast<char>(value)));
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(descriptor >= 0);
    std::filesystem::remove(path);
    return absl::StrCat("from_tensor_slices { tensor { npy: '/proc/", getpid(), "/fd/", descriptor,
                        "' } } | batch { batch_size: 2 }");
  };
  const std::string one = Stages(spec_of(1)), same = Stages(spec_of(1)), other = Stages(spec_of(2));
  const std::string cursor = CursorOf(one, 1);
  CHECK(Refused(same, cursor).ok());
  CHECK(absl::IsFailedPrecondition(Refused(other, cursor)));
}

TEST_CASE("A cursor knows long files by their ends, not by what is between them") {
  ScratchFolder folder;
  const std::string good(30'000, 'x');
  WriteFile(folder / "data", good);
  const std::string spec = Stages(absl::StrCat("fixed_length_record { files: '", folder / "data",
                                               "' record_bytes: 1000 } | batch { batch_size: 4 }"));
  const std::string cursor = CursorOf(spec, 2);
  for (const size_t at : {0, 4095, 4096, 15'000, 30'000 - 4097, 30'000 - 4096, 29'999}) {
    std::string bytes = good;
    bytes[at] = 'y';
    WriteFile(folder / "data", bytes);
    INFO("byte " << at);
    const absl::Status status = TryRunPlan(MustPlan(spec), {.cursor = cursor}).status();
    const bool is_end = at < 4096 || at >= 30'000 - 4096;
    CHECK(status.code() ==
          (is_end ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kOk));
  }
}

TEST_CASE("Failures that are left out count as much behind a cursor") {
  ScratchFolder folder;
  WriteFile(folder / "data", "1\n2\nx\n3\nx\nx\n4\n5\nx\n6\n");
  const auto plan = MustPlan(
      Stages(absl::StrCat("text_line { files: '", folder / "data",
                          "' } | map { out: 'n = string_to_number(value)' } | ignore_errors { "
                          "max_skipped: 3 } | batch { batch_size: 1 }")));
  const RunResult reference = RunPlan(plan);
  REQUIRE(reference.batches.size() == 5);
  CHECK(reference.status.code() == absl::StatusCode::kDataLoss);
  for (const Batch& batch : reference.batches) {
    INFO("behind step " << batch.info.step);
    const RunResult rest = RunPlan(plan, {.cursor = batch.info.cursor});
    CHECK(rest.batches.size() == 4 - batch.info.step);
    CHECK(rest.status == reference.status);
  }
}

TEST_CASE("What is left out is listed once, whatever is sought behind it") {
  ContractFiles files;
  // Long enough for elements to be sought, not read and left.
  WriteShard(files.folder / "many.tfrecord", 0, 21000);
  WriteShard(files.folder / "before", 0, 5);
  FlipBit(files.folder / "many.tfrecord", ReadFile(files.folder / "before").size() + 20);
  const RunResult result = RunPlan(MustPlan(
      files.Spec("tfrecord { files: 'FOLDER/many.tfrecord' damage { on_damage: SKIP_RECORD } } "
                 "| shard { num_shards: 5000 index: 0 } | batch { batch_size: 1 }")));
  REQUIRE(result.status.ok());
  CHECK(result.batches.size() == 5);
  CHECK(result.skipped.size() == 1);
}

TEST_CASE("What is left out behind the last element counts once, also behind a cursor") {
  ScratchFolder folder;
  WriteFile(folder / "data", "1\n2\n3\nx\n");
  // The damaged end of a file, and behind it another file without any.
  WriteShard(folder / "0", 0, 3);
  WriteShard(folder / "1", 3, 3);
  std::ofstream(folder / "0", std::ios::app) << "cut";
  const std::string texts =
      absl::StrCat("text_line { files: '", folder / "data",
                   "' } | map { out: 'n = string_to_number(value)' } | ignore_errors { "
                   "max_skipped: 1 } | ");
  const std::string files =
      absl::StrCat("tfrecord { files: '", folder / "1", "' files: '", folder / "0",
                   "' damage { on_damage: SKIP_RECORD max_skipped: 1 } } | ");
  for (const std::string& source : {texts, files}) {
    for (const char* const order :
         {"batch { batch_size: 2 }", "batch { batch_size: 2 } | repeat { count: 3 }",
          "repeat { count: 3 } | batch { batch_size: 2 }"}) {
      const auto plan = MustPlan(Stages(source + order));
      const RunResult reference = RunPlan(plan);
      INFO(source << order << ": " << reference.status.ToString());
      REQUIRE(reference.status.ok());
      REQUIRE(reference.finished);
      for (const Batch& batch : reference.batches) {
        INFO("behind step " << batch.info.step);
        const RunResult rest = RunPlan(plan, {.cursor = batch.info.cursor});
        INFO(rest.status.ToString());
        CHECK(rest.status.ok());
        CHECK(rest.batches.size() == reference.batches.size() - batch.info.step - 1);
      }
    }
  }
}

TEST_CASE("A cursor is at most 1,024 bytes, and a pipeline that needs more says so") {
  std::string zip = "zip {";
  for (int input = 0; input < 20; ++input)
    absl::StrAppend(&zip,
                    " (| range { stop: 1000 } | shuffle { buffer_size: 3 seed: 1 } | repeat {} |)");
  const std::string small = Stages(zip + " } | batch { batch_size: 2 } | take { count: 3 }");
  for (const Batch& batch : RunText(small).batches)
    CHECK(batch.info.cursor.size() <= kMaxCursorBytes);
  std::string large = "zip {";
  for (int input = 0; input < 300; ++input)
    absl::StrAppend(&large,
                    " (| range { stop: 1000 } | shuffle { buffer_size: 3 seed: 1 } | repeat {} |)");
  const auto plan = PlanText(Stages(large + " } | batch { batch_size: 2 } | take { count: 3 }"));
  const absl::Status status = plan.ok() ? RunPlan(*plan).status : plan.status();
  INFO(status.ToString());
  CHECK(status.code() == absl::StatusCode::kResourceExhausted);
  CHECK(absl::StrContains(status.message(), "> 1024 bytes"));
}

TEST_CASE("fault 62: Steps keep their numbers beyond 2^32 and up to 2^63") {
  ContractFiles files;
  const std::string spec = files.Spec("$SHARDS | $PARSE | repeat {} | batch { batch_size: 7 }");
  const auto plan = MustPlan(spec);
  const v1::Fingerprint fingerprint = *FingerprintOf(*plan);
  const RunResult reference = RunPlan(plan, {.max_steps = 20});
  const ResumePoint point = *ReadCursor(reference.batches[3].info.cursor, fingerprint);
  for (const uint64_t step : {(uint64_t{1} << 32) - 3, (uint64_t{1} << 63) - 5}) {
    const std::string late =
        *CursorMaker(fingerprint).Make(step, Position(point.position.counters()));
    const RunResult result = RunPlan(plan, {.workers = 3, .max_steps = 10, .cursor = late});
    REQUIRE(result.batches.size() == 10);
    for (uint64_t i = 0; i < 10; ++i) {
      CHECK(result.batches[i].info.step == step + i);
      CHECK(result.batches[i].tensors == reference.batches[4 + i].tensors);
      CHECK(ReadCursor(result.batches[i].info.cursor, fingerprint)->step == step + i + 1);
    }
  }
}

}  // namespace
}  // namespace penstock::test
