// The contract of a running pipeline: the same bytes whatever the workers, errors in order and with
// their address, an end that stays.
#include "server/engine/run/executor.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "io/file/crc32c.h"
#include "tests/support/catch.h"
#include "tests/support/compressed.h"
#include "tests/support/faulty_files.h"
#include "tests/support/frames.h"
#include "tests/support/hanging_files.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock::test {
namespace {

constexpr size_t kDataBytes = 40;

std::string Spec(const std::string& files, const std::string& rest,
                 size_t data_bytes = kDataBytes) {
  return absl::StrCat("stage { tfrecord { files: '", files, "' cycle_length: 3 } } ", rest,
                      " stage { parse_example { feature { key: 'd' bytes { length: ", data_bytes,
                      " } } feature { key: 'n' int64 {} } } } ");
}

// Records above what has a cell, numbered from 0; returns how many bytes each has in the file.
size_t WriteLongRecords(const std::string& path, int64_t count) {
  std::vector<std::string> records;
  for (int64_t n = 0; n < count; ++n) records.push_back(MakeRecord(n, 30000));
  WriteRecords(path, records);
  return ReadFile(path).size() / count;
}

TEST_CASE("1, 2, 3 and 8 workers and any number of slots give the same bytes") {
  ScratchFolder folder;
  for (int shard = 0; shard < 5; ++shard)
    WriteShard(folder / absl::StrCat(shard), 1000 * shard, 700 + 31 * shard, kDataBytes);
  const std::string spec = Spec(folder / "*", "stage { shuffle { buffer_size: 300 seed: 9 } }") +
                           "stage { batch { batch_size: 100 } } stage { repeat { count: 3 } }";
  const RunResult reference = RunText(spec, {.workers = 1, .slots = 1});
  REQUIRE(reference.batches.size() == 3 * 39);
  CHECK(reference.status.ok());
  for (int workers : {2, 3, 8}) {
    for (int slots : {1, 2, 5}) {
      INFO(workers << " workers, " << slots << " slots");
      const RunResult result = RunText(spec, {.workers = workers, .slots = slots});
      CHECK(result.finished);
      CHECK(result.batches == reference.batches);
    }
  }
}

TEST_CASE("Long records are read late, and give the same bytes mixed with short ones") {
  ScratchFolder folder;
  std::vector<std::string> records;
  std::vector<int64_t> expected;
  // Runs of long and short records, so that the reader changes its mind in the middle of a chunk
  // and at its start.
  for (int64_t n = 0; n < 400; ++n) {
    records.push_back(MakeRecord(n, (n / 70) % 2 == 0 ? 16 : (n % 3 == 0 ? 300 : 20000 + 100 * n)));
    expected.push_back(n);
  }
  WriteRecords(folder / "a", records);
  for (const char* shuffle : {"", "stage { shuffle { buffer_size: 64 seed: 1 } }"}) {
    const std::string spec =
        absl::StrCat("stage { tfrecord { files: '", folder / "a", "' } } ", shuffle,
                     " stage { parse_example { feature { key: 'n' int64 {} } } } stage { batch { "
                     "batch_size: 32 } }");
    std::vector<int64_t> found = Int64s(RunText(spec));
    if (*shuffle) std::sort(found.begin(), found.end());
    CHECK(found == expected);
  }
}

TEST_CASE("Files larger than a chunk, with records across every chunk's end") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 9000, 150);
  RunResult result = RunText(Spec(folder / "a", "", 150) + "stage { batch { batch_size: 512 } }");
  std::vector<int64_t> numbers = Int64s(result, 1);
  REQUIRE(numbers.size() == 9000);
  for (int64_t n = 0; n < 9000; ++n) REQUIRE(numbers[n] == n);
  // `d` is copied whole: the first bytes of row 1 of step 1 are those of record 513.
  CHECK(result.batches[1].tensors[0][150] == static_cast<char>(513 * 31));
}

struct BadFile {
  const char* what;
  void (*damage)(const std::string& path);
  std::vector<const char*> message;  // all of these
};

constexpr size_t kRecordBytes = 16 + 65;  // of MakeRecord(n, 40) for 0 <= n < 128, with its frame

const BadFile kBadFiles[] = {
    {"length checksum",
     [](const std::string& path) { FlipBit(path, 17 * kRecordBytes); },
     {"length checksum mismatch", "record 17, offset 1377"}},
    {"data checksum",
     [](const std::string& path) { FlipBit(path, 17 * kRecordBytes + 30); },
     {"data checksum mismatch", "record 17, offset 1377"}},
    {"cut header",
     [](const std::string& path) {
       WriteFile(path, ReadFile(path).substr(0, 17 * kRecordBytes + 5));
     },
     {"header is cut", "expected 12 bytes, the file has 5 more", "record 17, offset 1377"}},
    {"cut data",
     [](const std::string& path) {
       WriteFile(path, ReadFile(path).substr(0, 18 * kRecordBytes - 5));
     },
     {"record is cut", "record 17, offset 1377"}},
    {"cut footer",
     [](const std::string& path) {
       WriteFile(path, ReadFile(path).substr(0, 18 * kRecordBytes - 1));
     },
     {"record is cut", "record 17, offset 1377"}},
};

TEST_CASE("A damaged file ends the stream behind the batches before the damage, with its address") {
  for (const BadFile& bad : kBadFiles) {
    for (int workers : {1, 4}) {
      INFO(bad.what);
      ScratchFolder folder;
      WriteShard(folder / "a", 0, 40, kDataBytes);
      REQUIRE(ReadFile(folder / "a").size() == 40 * kRecordBytes);
      bad.damage(folder / "a");
      const RunResult result = RunText(Spec(folder / "a", "") + "stage { batch { batch_size: 4 } }",
                                       {.workers = workers});
      CHECK(result.finished);
      CHECK(result.status.code() == absl::StatusCode::kDataLoss);
      INFO(result.status.message());
      for (const char* part : bad.message)
        CHECK(absl::StrContains(std::string(result.status.message()), part));
      CHECK(absl::StrContains(std::string(result.status.message()), folder / "a"));
      CHECK(absl::StrContains(std::string(result.status.message()), "stage tfrecord"));
      // Records 0 to 16 are whole: four batches of four.
      CHECK(result.batches.size() == 4);
    }
  }
}

TEST_CASE(
    "fault 6: A length of 2^40 with a valid checksum is refused before anything is allocated") {
  ScratchFolder folder;
  // The length 2^40 and its masked CRC-32C.
  const std::string header("\x00\x00\x00\x00\x00\x01\x00\x00", 8);
  WriteFile(folder / "a", "");
  std::string bytes = header;
  const uint32_t crc = MaskCrc32c(Crc32c(reinterpret_cast<const uint8_t*>(header.data()), 8));
  bytes.append(reinterpret_cast<const char*>(&crc), 4);
  bytes.append(100, 'x');
  WriteFile(folder / "a", bytes);
  const RunResult result = RunText(Spec(folder / "a", "") + "stage { batch { batch_size: 4 } }");
  CHECK(result.status.code() == absl::StatusCode::kDataLoss);
  CHECK(absl::StrContains(std::string(result.status.message()),
                          "record longer than limit: 1099511627776 > 268435456 bytes"));
}

TEST_CASE("A file that is no TFRecord is called so") {
  ScratchFolder folder;
  WriteFile(folder / "a", "name,age\nalice,31\nbob,27\n");
  const RunResult result = RunText(Spec(folder / "a", "") + "stage { batch { batch_size: 4 } }");
  CHECK(result.status.code() == absl::StatusCode::kDataLoss);
  CHECK(absl::StrContains(std::string(result.status.message()), "not a TFRecord file?"));
}

TEST_CASE("Of several bad rows in a step the lowest is reported, whatever the workers") {
  ScratchFolder folder;
  std::vector<std::string> records;
  for (int64_t n = 0; n < 600; ++n)
    records.push_back(MakeRecord(n, n == 333 || n == 470 || n == 260 ? 41 : kDataBytes));
  WriteRecords(folder / "a", records);
  for (int workers : {1, 2, 8}) {
    const RunResult result = RunText(Spec(folder / "a", "") + "stage { batch { batch_size: 256 } }",
                                     {.workers = workers});
    INFO(result.status.message());
    CHECK(result.batches.size() == 1);
    CHECK(absl::StrContains(std::string(result.status.message()),
                            "stage parse_example: feature \"d\": expected 40 bytes, found 41"));
    CHECK(absl::StrContains(std::string(result.status.message()), "record 260, "));
  }
}

TEST_CASE("All workers are at one step whose rows take long, however small these are") {
  ScratchFolder folder;
  const size_t frame = WriteLongRecords(folder / "a", 64);
  // The rows of a batch are 8 bytes each, or strings, and each is waited for.
  for (const char* feature : {"key: 'n' int64 {}", "key: 'd' bytes {}"}) {
    HangingFiles files([&](const std::string&, uint64_t offset) { return offset % frame == 12; });
    auto plan = PlanText(absl::StrCat("stage { tfrecord { files: '", folder / "a",
                                      "' } } stage { parse_example { feature { ", feature,
                                      " } } } stage { batch { batch_size: 64 } }"),
                         files);
    REQUIRE(plan.ok());
    RunResult result;
    std::thread run([&] { result = RunPlan(*plan, {.workers = 8, .slots = 1}); });
    for (int i = 0; i < 3000 && files.hanging() < 8; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(files.hanging() == 8);
    files.LetGo();
    run.join();
    CHECK(result.status.ok());
    CHECK(result.batches == RunPlan(*plan, {.workers = 1}).batches);
  }
}

TEST_CASE("A long record with a wrong checksum fails its step") {
  ScratchFolder folder;
  const size_t frame = WriteLongRecords(folder / "a", 20);
  FlipBit(folder / "a", 13 * frame + 100);
  const std::string spec = absl::StrCat("stage { tfrecord { files: '", folder / "a",
                                        "' } } stage { parse_example { feature { key: 'n' int64 {} "
                                        "} } } stage { batch { batch_size: 4 } }");
  const RunResult result = RunText(spec);
  CHECK(result.batches.size() == 3);
  CHECK(result.status.code() == absl::StatusCode::kDataLoss);
  INFO(result.status.message());
  CHECK(absl::StrContains(std::string(result.status.message()),
                          absl::StrCat("data checksum mismatch")));
  CHECK(absl::StrContains(std::string(result.status.message()),
                          absl::StrCat("record 13, offset ", 13 * frame)));
}

TEST_CASE("SKIP_SHARD leaves out a long record with a wrong checksum and all behind it, too") {
  ScratchFolder folder;
  const size_t frame = WriteLongRecords(folder / "a", 20);
  WriteLongRecords(folder / "b", 20);
  FlipBit(folder / "a", 13 * frame + 100);
  const RunResult result = RunText(absl::StrCat(
      "stage { tfrecord { files: '", folder / "*",
      "' damage { on_damage: SKIP_SHARD } } } stage { parse_example { feature { key: 'n' int64 {} "
      "} } } stage { batch { batch_size: 4 } }"));
  CHECK(result.status.ok());
  std::vector<int64_t> expected;
  for (int64_t n = 0; n < 33; ++n) expected.push_back(n < 13 ? n : n - 13);
  CHECK(Int64s(result) == expected);
}

TEST_CASE("fault 23: A file that changed since the plan was made is refused") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 10, kDataBytes);
  auto plan = PlanText(Spec(folder / "a", "") + "stage { batch { batch_size: 4 } }");
  REQUIRE(plan.ok());
  WriteShard(folder / "a", 0, 11, kDataBytes);
  const RunResult result = RunPlan(*plan);
  CHECK(result.status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(result.batches.empty());
}

TEST_CASE(
    "fault 24: a file that is cut while it is open is an error that SKIP_SHARD does not skip") {
  for (const char* compression : {"", "GZIP"}) {
    INFO(compression);
    std::string bytes;
    for (int64_t n = 0; n < 200; ++n) bytes += Frame(MakeRecord(n, 1000 + n % 7));
    if (*compression != '\0') bytes = Gzip(bytes);
    uint64_t cut_at = ~uint64_t{0};
    FaultyFiles files({{"a", bytes}},
                      [&cut_at](uint64_t call) { return ReadFault{.truncate = call == cut_at}; });
    const auto plan = PlanText(
        absl::StrCat("stage { tfrecord { files: 'a' compression: '", compression,
                     "' damage { on_damage: SKIP_SHARD } } } stage { batch { batch_size: 10 } }"),
        files);
    REQUIRE(plan.ok());
    const RunResult whole = RunPlan(*plan, {.workers = 1});
    REQUIRE(whole.batches.size() == 20);
    // At each read in turn; the first ones are those of the fingerprint.
    int cut_in_time = 0;
    for (uint64_t n = 0; n < 12; ++n) {
      files.Replace("a", bytes);
      cut_at = files.calls() + n;
      const auto result = TryRunPlan(*plan, {.workers = 1});
      if (!result.ok() || result->batches == whole.batches) continue;
      CHECK(!result->status.ok());
      cut_in_time += absl::StrContains(result->status.message(), "became shorter");
    }
    CHECK(cut_in_time > 0);
  }
}

TEST_CASE("fault 16: A missing feature takes its default or is an error with its address") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 6, 8);
  const std::string source = absl::StrCat("stage { tfrecord { files: '", folder / "a", "' } } ");
  const RunResult filled =
      RunText(source +
              "stage { parse_example { feature { key: 'x' int64 { shape: [2] default_value: [7, "
              "-8] } } feature { key: 'y' float { default_value: 0.5 } } "
              "feature { key: 'z' bytes { length: 2 default_value: 'ab' } } } } stage { batch { "
              "batch_size: 6 } }");
  REQUIRE(filled.batches.size() == 1);
  CHECK(filled.batches[0].As<int64_t>(0) ==
        std::vector<int64_t>{7, -8, 7, -8, 7, -8, 7, -8, 7, -8, 7, -8});
  CHECK(filled.batches[0].As<float>(1) == std::vector<float>(6, 0.5f));
  CHECK(filled.batches[0].tensors[2] == "abababababab");
  const RunResult missing = RunText(source +
                                    "stage { parse_example { feature { key: 'x' int64 {} } } } "
                                    "stage { batch { batch_size: 6 } }");
  CHECK(missing.status.code() == absl::StatusCode::kDataLoss);
  CHECK(absl::StrContains(std::string(missing.status.message()), "feature \"x\": missing"));
  CHECK(absl::StrContains(std::string(missing.status.message()), "record 0, offset 0"));
}

TEST_CASE("Stopping in the middle of a stream returns") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 5000, kDataBytes);
  for (int i = 0; i < 20; ++i) {
    RunOptions options{.workers = 4, .slots = 2, .max_steps = static_cast<uint64_t>(i)};
    const RunResult result =
        RunText(Spec(folder / "a", "stage { shuffle { buffer_size: 1000 seed: 1 } } ") +
                    "stage { batch { batch_size: 64 } } stage { repeat {} }",
                options);
    CHECK(result.batches.size() == static_cast<size_t>(i));
    CHECK_FALSE(result.finished);
  }
}

}  // namespace
}  // namespace penstock::test
