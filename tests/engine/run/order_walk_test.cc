#include "server/engine/run/order_walk.h"

#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "io/record/record_index.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock::test {
namespace {

constexpr char kRest[] =
    "stage { parse_example { feature { key: 'n' int64 {} } } } stage { batch { batch_size: 7 } } ";

TEST_CASE("where and when agree with what was delivered") {
  ScratchFolder folder;
  // Record i of file a holds i, of file b 1000 + i.
  WriteShard(folder / "a", 0, 60);
  WriteShard(folder / "b", 1000, 35);
  const std::string source = absl::StrCat("stage { tfrecord { files: '", folder.path(),
                                          "/?' cycle_length: 2 block_length: 3 } } ");
  for (const std::string& order :
       {std::string(), std::string("stage { shuffle { buffer_size: 20 seed: 1 } } "),
        std::string("stage { shuffle { global: true seed: 1 } } ")}) {
    const std::string spec = absl::StrCat(source, order, "stage { repeat { count: 2 } } ", kRest);
    CAPTURE(spec);
    const RunResult result = RunText(spec);
    const auto plan = PlanText(spec);
    REQUIRE(plan.ok());
    REQUIRE(result.batches.size() == 28);
    for (const Batch& batch : result.batches) {
      if (batch.info.step % 5 != 3) continue;
      const std::vector<int64_t> values = batch.As<int64_t>(0);
      for (uint32_t row = 0; row < values.size(); ++row) {
        const auto records = FindRecords(*plan, batch.info.step, row);
        REQUIRE(records.ok());
        REQUIRE(records->size() == 1);
        const RecordPlace& record = records->front();
        CHECK(record.file == folder / (values[row] < 1000 ? "a" : "b"));
        CHECK(record.record_known);
        CHECK(record.record == static_cast<uint64_t>(values[row] % 1000));
        const auto back = FindRow(*plan, record.file, record.offset, batch.info.step, 28);
        REQUIRE(back.ok());
        CHECK(back->step == batch.info.step);
        CHECK(back->row == row);
        CHECK(back->epoch == record.epoch);
        if (row == 0) CHECK(record.epoch == batch.info.epoch);
        if (batch.info.step == 3) {
          // Nothing is looked at behind the last step that was asked for.
          CHECK(FindRow(*plan, record.file, record.offset, 0, 3).status().code() ==
                absl::StatusCode::kNotFound);
          CHECK(FindRow(*plan, record.file, record.offset, 0, 4).ok());
        }
      }
    }
    // A file's name is its own or ends with whole folders.
    CHECK(FindRow(*plan, "a", 0, 0, 28).ok());
    const std::string part = (folder / "a").substr((folder / "a").rfind('/') - 1);
    CHECK_THAT(std::string(FindRow(*plan, part, 0, 0, 28).status().message()),
               Catch::Contains("reads no file of the name"));
    CHECK(FindRecords(*plan, 28, 0).status().code() == absl::StatusCode::kOutOfRange);
    CHECK(FindRecords(*plan, 0, 7).status().code() == absl::StatusCode::kOutOfRange);
    // The last batch has fewer rows.
    CHECK(FindRecords(*plan, 27, 1).status().code() == absl::StatusCode::kOutOfRange);
    CHECK(FindRow(*plan, "a", 1, 0, 28).status().code() == absl::StatusCode::kNotFound);
    CHECK(FindRow(*plan, "no such file", 0, 0, 28).status().code() == absl::StatusCode::kNotFound);
  }
}

TEST_CASE("a row behind a section comes from the record that it was before") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 60);
  WriteShard(folder / "b", 1000, 35);
  const std::string source = absl::StrCat("stage { tfrecord { files: '", folder.path(), "/?' } } ");
  const std::string parse = "stage { parse_example { feature { key: 'n' int64 {} } } } ";
  const std::string filter = "stage { filter { predicate: 'n % 3 == 1' } } ";
  for (const std::string& order :
       {std::string(), std::string("stage { shuffle { buffer_size: 9 seed: 1 } } ")}) {
    const std::string spec =
        absl::StrCat(source, parse, filter, order, "stage { batch { batch_size: 7 } }");
    const auto plan = PlanText(spec);
    REQUIRE(plan.ok());
    const RunResult result = RunPlan(*plan);
    REQUIRE(result.batches.size() == 5);
    for (const Batch& batch : result.batches) {
      const std::vector<int64_t> values = batch.As<int64_t>(0);
      for (uint32_t row = 0; row < values.size(); ++row) {
        CHECK(values[row] % 3 == 1);
        const auto records = FindRecords(*plan, batch.info.step, row);
        REQUIRE(records.ok());
        REQUIRE(records->size() == 1);
        CHECK(records->front().file == folder / (values[row] < 1000 ? "a" : "b"));
        CHECK(records->front().record == static_cast<uint64_t>(values[row] % 1000));
      }
    }
  }
}

TEST_CASE("a row of a batch that a later stage takes as a whole comes from its own record") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 60);
  WriteShard(folder / "b", 1000, 35);
  const std::string source = absl::StrCat("stage { tfrecord { files: '", folder.path(), "/?' } } ");
  const std::string parse = "stage { parse_example { feature { key: 'n' int64 {} } } } ";
  const std::string batch = "stage { batch { batch_size: 7 } } ";
  const std::string shuffle = "stage { shuffle { buffer_size: 4 seed: 1 } } ";
  for (const std::string& stages :
       {parse + batch + shuffle + "stage { repeat { count: 2 } }",
        "stage { shuffle { global: true seed: 1 } } " + parse + batch + shuffle,
        parse + "stage { filter { predicate: 'n % 3 == 1' } } " + batch + shuffle,
        parse + batch + shuffle + "stage { map { out: 'n = n' out: 'm = n * 2' } }",
        parse + batch + shuffle +
            "stage { enumerate {} } stage { map { out: 'n = feature(\"1/n\")' } }"}) {
    const std::string spec = source + stages;
    CAPTURE(spec);
    const auto plan = PlanText(spec);
    INFO(plan.status().ToString());
    REQUIRE(plan.ok());
    const RunResult result = RunPlan(*plan);
    REQUIRE(result.batches.size() >= 5);
    for (const Batch& step : result.batches) {
      if (step.info.step % 3 == 1) continue;
      // Of a last one that is short too.
      const std::string& bytes = step.parts[0][0];
      const auto* const values = reinterpret_cast<const int64_t*>(bytes.data());
      const uint32_t rows = bytes.size() / sizeof(int64_t);
      for (uint32_t row = 0; row < rows; ++row) {
        const auto records = FindRecords(*plan, step.info.step, row);
        INFO(records.status().ToString());
        REQUIRE(records.ok());
        REQUIRE(records->size() == 1);
        CHECK(records->front().file == folder / (values[row] < 1000 ? "a" : "b"));
        CHECK(records->front().record == static_cast<uint64_t>(values[row] % 1000));
        CHECK(records->front().epoch == step.info.epoch);
        const auto back =
            FindRow(*plan, records->front().file, records->front().offset, step.info.step, 28);
        REQUIRE(back.ok());
        CHECK(back->step == step.info.step);
        CHECK(back->row == row);
        const auto shown = ShowRow(*plan, step.info.step, row);
        INFO(shown.status().ToString());
        REQUIRE(shown.ok());
        CHECK(shown->records.front().offset == records->front().offset);
        CHECK(shown->features[0] == Feature{"n", {DType::kInt64, {}}});
        CHECK(shown->values[0] == bytes.substr(row * sizeof(int64_t), sizeof(int64_t)));
      }
      CHECK(FindRecords(*plan, step.info.step, rows).status().code() ==
            absl::StatusCode::kOutOfRange);
    }
  }
}

TEST_CASE("what was made of a whole batch is shown as it is, with the record of the row") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 12);
  const auto plan = PlanText(absl::StrCat(
      "stage { tfrecord { files: '", folder / "a",
      "' } } stage { parse_example { feature { key: 'n' int64 {} } } } stage { batch { batch_size: "
      "4 } } stage { shuffle { buffer_size: 1 seed: 1 } } stage { map { out: 'n = sum(n)' } }"));
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  const auto shown = ShowRow(*plan, 1, 3);
  REQUIRE(shown.ok());
  CHECK(shown->records.front().record == 7);
  CHECK(shown->features[0] == Feature{"n", {DType::kInt64, {}}});
  int64_t sum = 0;
  std::memcpy(&sum, shown->values[0].data(), sizeof(sum));
  CHECK(sum == 4 + 5 + 6 + 7);
}

TEST_CASE("whoever looks for a row writes nothing") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 12);
  const auto plan = PlanText(absl::StrCat(
      "stage { tfrecord { files: '", folder / "a",
      "' } } stage { parse_example { feature { key: 'n' int64 {} } } } stage { cache { filename: '",
      folder / "kept", "' } } stage { repeat { count: 2 } } stage { batch { batch_size: 5 } }"));
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  const auto records = FindRecords(*plan, 3, 0);
  REQUIRE(records.ok());
  CHECK(records->front().record == 3);
  CHECK(records->front().epoch == 1);
  CHECK_FALSE(std::filesystem::exists(folder / "kept"));
}

TEST_CASE("a row of several sources comes from a record of each") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 10);
  WriteShard(folder / "b", 100, 10);
  const auto input = [&](const std::string& file) {
    return absl::StrCat("input { stage { tfrecord { files: '", folder / file, "' } } } ");
  };
  const auto plan = PlanText(
      absl::StrCat("stage { zip { ", input("a"), input("b"), "} } stage { enumerate {} }"));
  REQUIRE(plan.ok());
  const auto records = FindRecords(*plan, 4, 0);
  REQUIRE(records.ok());
  REQUIRE(records->size() == 2);
  CHECK((*records)[0].file == folder / "a");
  CHECK((*records)[0].record == 4);
  CHECK((*records)[1].file == folder / "b");
  CHECK((*records)[1].record == 4);
}

// Each row's records are those that hold its values: of tensor `t`, record `value % 1000` of file a
// or, from 1000 on, b. The rows that any of them fills are found back.
void CheckOrigins(const std::string& spec, const ScratchFolder& folder, size_t min_steps) {
  CAPTURE(spec);
  const auto plan = PlanText(spec);
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  const RunResult result = RunPlan(*plan);
  INFO(result.status.ToString());
  REQUIRE(result.batches.size() >= min_steps);
  for (const Batch& batch : result.batches) {
    const uint32_t rows = batch.info.rows;
    for (uint32_t row = 0; row < rows; ++row) {
      CAPTURE(batch.info.step, row);
      std::vector<int64_t> values;
      for (size_t t = 0; t < batch.tensors.size(); ++t) {
        const std::vector<int64_t> all = batch.As<int64_t>(t);
        // A row may be a batch itself.
        const size_t each = all.size() / rows;
        values.insert(values.end(), all.begin() + row * each, all.begin() + (row + 1) * each);
      }
      const auto records = FindRecords(*plan, batch.info.step, row);
      INFO(records.status().ToString());
      REQUIRE(records.ok());
      REQUIRE(records->size() == values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        const RecordPlace& record = (*records)[i];
        CHECK(record.file == folder / (values[i] < 1000 ? "a" : "b"));
        CHECK(record.record == static_cast<uint64_t>(values[i] % 1000));
        const auto back = FindRow(*plan, record.file, record.offset, batch.info.step, 1);
        INFO(back.status().ToString());
        REQUIRE(back.ok());
        CHECK(back->row == row);
        CHECK(back->epoch == record.epoch);
      }
    }
  }
}

std::string Parsed(const std::string& file) {
  return absl::StrCat("stage { tfrecord { files: '", file,
                      "' } } stage { parse_example { feature { key: 'n' int64 {} } } } ");
}

std::string ParsedInput(const std::string& file, const std::string& more = "") {
  return absl::StrCat("input { ", Parsed(file), more, "} ");
}

TEST_CASE("a row that was taken out of a batch comes from its own record, and not from the first") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 23);
  const std::string source = Parsed(folder / "a");
  const std::string batch = "stage { batch { batch_size: 5 } } ";
  const std::string shuffle = "stage { shuffle { buffer_size: 3 seed: 1 } } ";
  const std::string last = "stage { batch { batch_size: 3 } }";
  for (const std::string& stages :
       {batch + shuffle + "stage { unbatch {} } " + last,
        batch + shuffle +
            "stage { filter { predicate: 'sum(n) % 2 == 0' } } stage { unbatch {} } " + last,
        batch + shuffle + "stage { unbatch {} } stage { filter { predicate: 'n % 3 != 1' } } " +
            last,
        std::string("stage { batch { batch_size: 5 remainder: PAD } } ") + shuffle +
            "stage { unbatch {} } stage { take { count: 23 } } stage { filter { predicate: 'n > "
            "0' } } " +
            last,
        batch + "stage { batch { batch_size: 2 } } " + shuffle +
            "stage { unbatch {} } stage { unbatch {} } " + last,
        batch + shuffle + "stage { rebatch { batch_size: 4 } } stage { unbatch {} } " + last}) {
    CheckOrigins(source + stages, folder, 3);
  }
}

TEST_CASE("a row that is a batch comes from all of its records") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 24);
  CheckOrigins(absl::StrCat("stage { tfrecord { files: '", folder / "a",
                            "' } } stage { parse_example { feature { key: 'n' int64 {} } } } "
                            "stage { batch { batch_size: 4 } } stage { shuffle { buffer_size: 3 "
                            "seed: 1 } } stage { batch { batch_size: 3 } }"),
               folder, 2);
}

TEST_CASE("a row behind a section that tuples went through comes from a record of each source") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 30);
  WriteShard(folder / "b", 1000, 30);
  const std::string filter = "stage { filter { predicate: 'feature(\"0/n\") % 2 == 0' } } ";
  const std::string batch = "stage { batch { batch_size: 3 } } ";
  const std::string zip =
      absl::StrCat("stage { zip { ", ParsedInput(folder / "a"),
                   ParsedInput(folder / "b", "stage { skip { count: 2 } } "), "} } ");
  for (const std::string& stages :
       {filter + batch, filter + filter + "stage { shuffle { buffer_size: 4 seed: 1 } } " + batch,
        batch + "stage { shuffle { buffer_size: 3 seed: 1 } } stage { unbatch {} } " + batch,
        filter + "stage { cache {} } stage { repeat { count: 2 } } " + batch}) {
    CheckOrigins(zip + stages, folder, 3);
  }
  // Batches side by side, of which each gives its own row.
  const std::string pairs = "stage { batch { batch_size: 4 } } ";
  CheckOrigins(absl::StrCat("stage { zip { ", ParsedInput(folder / "a", pairs),
                            ParsedInput(folder / "b", pairs), "} } stage { unbatch {} } ", batch),
               folder, 3);
}

TEST_CASE("a record in a cell that an element had before comes from its own place") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 200);
  WriteShard(folder / "b", 1000, 200);
  // Cells of batches of one row are of the records' size.
  CheckOrigins(absl::StrCat("stage { zip { ",
                            ParsedInput(folder / "a",
                                        "stage { batch { batch_size: 2 } } stage { shuffle { "
                                        "buffer_size: 3 seed: 1 } } stage { unbatch {} } "),
                            ParsedInput(folder / "b"), "} } stage { batch { batch_size: 3 } }"),
               folder, 3);
}

TEST_CASE("a row that fails behind unbatch is told by where its batch begins, and said to be") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 23);
  const std::string source = Parsed(folder / "a");
  const std::string fails =
      "stage { map { out: 'n = n' out: 'b = (n + [0, 1])[where(n == 7, 5, 1)]' } } ";
  const std::string batches =
      "stage { batch { batch_size: 5 } } stage { shuffle { buffer_size: 3 "
      "seed: 1 } } stage { unbatch {} } ";
  const std::string last = "stage { batch { batch_size: 3 } }";
  const std::string in_batch = ", in the batch that begins there";
  const RunResult own = RunText(source + fails + last);
  CHECK_THAT(std::string(own.status.message()), Catch::Contains("record 7, "));
  CHECK_FALSE(absl::StrContains(own.status.message(), in_batch));
  const RunResult row = RunText(source + batches + fails + last);
  CHECK_THAT(std::string(row.status.message()), Catch::Contains("record 5, "));
  CHECK(absl::EndsWith(row.status.message(), in_batch));
  // A further section knows as much.
  const RunResult kept = RunText(source + batches + "stage { filter { predicate: 'n > 1' } } " +
                                 fails + "stage { ignore_errors {} } " + last);
  CHECK(kept.status.ok());
  REQUIRE(kept.skipped.size() == 1);
  CHECK(absl::EndsWith(kept.skipped[0].message, in_batch));
}

// Fault 35, of a caller that has gone.
TEST_CASE("a look-up ends when nobody wants it any more") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 60);
  const auto plan =
      PlanText(absl::StrCat("stage { tfrecord { files: '", folder / "a",
                            "' } } stage { parse_example { feature { key: 'n' int64 {} } } } stage "
                            "{ filter { predicate: 'n % "
                            "5 != 0' } } stage { batch { batch_size: 4 } } stage { repeat {} }"));
  REQUIRE(plan.ok());
  constexpr uint64_t kFar = uint64_t{1} << 40;
  std::atomic<bool> stop{false};
  const WalkLimits limits{&stop, nullptr};
  std::atomic<bool> begun{false};
  std::thread caller([&] {
    while (!begun.load()) std::this_thread::yield();
    stop.store(true);
  });
  begun.store(true);
  CHECK(absl::IsCancelled(FindRow(*plan, "a", 1, 0, kFar, limits).status()));
  caller.join();
  CHECK(absl::IsCancelled(FindRecords(*plan, kFar, 0, limits).status()));
  CHECK(absl::IsCancelled(ShowRow(*plan, kFar, 0, limits).status()));
  stop.store(false);
  CHECK(ShowRow(*plan, 3, 0, limits).ok());
}

TEST_CASE("a look-up has a limit of memory") {
  MemoryAccount::Options options;
  options.bytes_max = uint64_t{16} << 20;
  const auto account = MemoryAccount::Create(std::move(options));
  const auto plan = PlanText(
      "stage { counter {} } stage { filter { predicate: 'value >= 0' } } stage { shuffle { "
      "buffer_size: "
      "2147483647 seed: 1 } } stage { batch { batch_size: 4 } }");
  REQUIRE(plan.ok());
  const absl::Status status = FindRecords(*plan, 5, 0, {nullptr, account.get()}).status();
  INFO(status.ToString());
  CHECK(absl::IsResourceExhausted(status));
  CHECK(account->taken() == 0);
}

TEST_CASE("fault 35: where the rows of a batch came from is charged, too") {
  ScratchFolder folder;
  constexpr int64_t kRows = 40'000;
  WriteShard(folder / "a", 0, kRows);
  const auto plan = PlanText(absl::StrCat("stage { tfrecord { files: '", folder / "a",
                                          "' } } stage { parse_example { feature { key: "
                                          "'n' int64 {} } } } stage { batch { batch_size: ",
                                          kRows,
                                          " } } stage { filter { predicate: "
                                          "'n[0] >= 0' } } stage { batch { batch_size: 1 } }"));
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  const auto find = [&](uint64_t mebibytes) {
    MemoryAccount::Options options;
    options.bytes_max = mebibytes << 20;
    const auto account = MemoryAccount::Create(std::move(options));
    const auto records = FindRecords(*plan, 0, 0, {nullptr, account.get()});
    CHECK(account->taken() == 0);
    return records;
  };
  // As the file has no index, it is gone through once, and not once for each record.
  const auto records = find(64);
  REQUIRE(records.ok());
  REQUIRE(records->size() == kRows);
  for (size_t i = 0; i < records->size(); ++i)
    if ((*records)[i].record != i) FAIL("record " << (*records)[i].record << " at " << i);
  // Each takes more than 200 bytes while it is walked.
  CHECK(absl::IsResourceExhausted(find(8).status()));
}

}  // namespace
}  // namespace penstock::test
