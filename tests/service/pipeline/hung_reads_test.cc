// Reads and writes that hang: what is told of them, what ends by their deadlines, and what is left
// behind and given back.
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "server/service/pipeline/pipeline_table.h"
#include "server/service/state/text_proto.h"
#include "server/service/stream/leftovers.h"
#include "server/service/stream/within_deadline.h"
#include "tests/support/catch.h"
#include "tests/support/hanging_files.h"
#include "tests/support/recorded_disk.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock {
namespace {

constexpr int kRecords = 4000;
constexpr size_t kDataBytes = 1000;
// A creation looks at the end of a file too.
constexpr uint64_t kFarOffset = 400'000;
constexpr uint64_t kHungBytes = 200'000;

// Looks as the daemon does, until something is so.
template <typename Condition>
void Until(const PipelineTable& table, const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (!condition()) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    table.LookForHungReads();
    std::this_thread::yield();
  }
}

struct Fixture {
  explicit Fixture(uint64_t hangs_from)
      : files([hangs_from](const std::string& path, uint64_t offset) {
          return absl::EndsWith(path, "hangs") && offset >= hangs_from &&
                 offset < hangs_from + kHungBytes;
        }) {
    test::WriteShard(folder / "hangs", 0, kRecords, kDataBytes);
    test::WriteShard(folder / "sound", 0, kRecords, kDataBytes);
    table.emplace(files, v1::WorkerDefaults());
  }
  ~Fixture() { files.LetGo(); }

  v1::PipelineSpec Spec(const std::string& file, int deadline_ms, const std::string& order = "") {
    v1::PipelineSpec spec;
    REQUIRE(ParseTextProto(
                "name: 'p' workers: 2 stage { tfrecord { files: '" + (folder / file) + "' } } " +
                    order +
                    " stage { parse_example { feature { key: 'n' int64 {} } } }"
                    " stage { batch { batch_size: 10 } } stage { repeat {} } ring { slots: 64 }",
                "spec", &spec)
                .ok());
    spec.set_read_deadline_ms(deadline_ms);
    return spec;
  }
  v1::PipelineStats Stats() { return (*table->Find("p"))->Stats(); }

  test::ScratchFolder folder;
  test::HangingFiles files;
  std::optional<PipelineTable> table;  // goes first
};

const char* const kOrders[] = {"", "stage { shuffle { global: true seed: 1 } }"};

TEST_CASE(
    "fault 28: a read beyond its deadline ends its pipeline, and does no harm when it returns") {
  // The second one reads in the front, which looks for all records.
  for (const char* order : kOrders) {
    Fixture fixture(kFarOffset);
    PipelineTable& table = *fixture.table;
    REQUIRE(table.Create(fixture.Spec("hangs", 100, order)).ok());
    // Nobody takes a batch; who reads sees those before the read.
    Until(table, [&] { return fixture.Stats().state() == v1::PIPELINE_STATE_FAILED; });
    const v1::PipelineError error = fixture.Stats().error();
    CHECK(error.code() == static_cast<int>(absl::StatusCode::kDeadlineExceeded));
    CHECK(absl::StrContains(error.message(), "reading did not return within read_deadline_ms: "));
    CHECK(absl::StrContains(error.message(), "> 100 ms"));
    CHECK(absl::StrContains(error.message(), fixture.folder / "hangs"));
    // The front reads in pieces of 256 KiB.
    const bool has_offset = absl::StrContains(error.message(), ", offset 4") ||
                            absl::StrContains(error.message(), ", offset 5");
    CHECK(has_offset);
    CHECK(fixture.files.hanging() > 0);

    CHECK(table.Delete("p").ok());
    REQUIRE(table.Create(fixture.Spec("sound", 100)).ok());
    Until(table, [&] { return fixture.Stats().steps() > 0; });
    CHECK(fixture.files.hanging() > 0);
    CHECK(table.Delete("p").ok());
    CHECK(fixture.files.open() > 0);

    // It fills memory that is still there, and then all goes.
    fixture.files.LetGo();
    Until(table, [&] { return fixture.files.open() == 0; });
    // Who looks waits for none of it.
    CHECK(fixture.files.closed_by() != std::this_thread::get_id());
  }
}

TEST_CASE("fault 28: a read that hangs is told, and where it has no deadline it is waited for") {
  Fixture fixture(kFarOffset);
  PipelineTable& table = *fixture.table;
  REQUIRE(table.Create(fixture.Spec("hangs", 0)).ok());
  Until(table, [&] { return fixture.Stats().has_oldest_read(); });
  const v1::ReadUnderWay read = fixture.Stats().oldest_read();
  CHECK(read.doing() == "reading");
  CHECK(read.file() == fixture.folder / "hangs");
  CHECK(read.offset() >= kFarOffset);
  CHECK(read.seconds() >= 1);
  CHECK(fixture.Stats().state() == v1::PIPELINE_STATE_RUNNING);
  const uint64_t steps = fixture.Stats().steps();
  fixture.files.LetGo();
  Until(table,
        [&] { return !fixture.Stats().has_oldest_read() && fixture.Stats().steps() >= steps; });
  CHECK(fixture.Stats().state() == v1::PIPELINE_STATE_RUNNING);
  CHECK(table.Delete("p").ok());
  CHECK(fixture.files.open() == 0);
}

TEST_CASE(
    "fault 28: a pipeline whose read hangs can be paused, told other numbers, and deleted without "
    "a deadline") {
  for (const char* order : kOrders) {
    Fixture fixture(kFarOffset);
    PipelineTable& table = *fixture.table;
    REQUIRE(table.Create(fixture.Spec("hangs", 0, order)).ok());
    Until(table, [&] { return fixture.files.hanging() > 0; });
    // It may wait for a front that reads, and holds up nobody but itself.
    std::thread pausing([pipeline = *table.Find("p")] { pipeline->Pause(true).IgnoreError(); });
    for (int i = 0; i < 100; ++i) CHECK(fixture.Stats().name() == "p");
    CHECK(table.Delete("p").ok());
    pausing.join();
    CHECK(fixture.files.hanging() > 0);
    fixture.files.LetGo();
    Until(table, [&] { return fixture.files.open() == 0; });
  }
}

TEST_CASE(
    "fault 28: a creation that meets a read beyond its deadline is an error, and its name is "
    "free") {
  Fixture fixture(0);
  PipelineTable& table = *fixture.table;
  const auto failed = table.Create(fixture.Spec("hangs", 100, kOrders[1]));
  REQUIRE_FALSE(failed.ok());
  CHECK(absl::IsDeadlineExceeded(failed.status()));
  CHECK(absl::StrContains(failed.status().message(), fixture.folder / "hangs"));
  CHECK(table.Check(fixture.Spec("sound", 100)).ok());
  REQUIRE(table.Create(fixture.Spec("sound", 100)).ok());
  fixture.files.LetGo();
  Until(table, [&] { return fixture.Stats().steps() > 0; });
  CHECK(table.Delete("p").ok());
  Until(table, [&] { return fixture.files.open() == 0; });
}

TEST_CASE("fault 28: the opening of a file that hangs is told, and left behind by a deletion") {
  Fixture fixture(UINT64_MAX);
  // A creation without a deadline opens its files here, and the pipeline opens them again
  // elsewhere.
  fixture.files.HangOpenings([here = std::this_thread::get_id()](const std::string& path) {
    return absl::EndsWith(path, "hangs") && std::this_thread::get_id() != here;
  });
  PipelineTable& table = *fixture.table;
  REQUIRE(table.Create(fixture.Spec("hangs", 0)).ok());
  Until(table, [&] { return fixture.Stats().has_oldest_read(); });
  const v1::ReadUnderWay opening = fixture.Stats().oldest_read();
  CHECK(opening.doing() == "opening");
  CHECK(opening.file() == fixture.folder / "hangs");
  CHECK(fixture.Stats().state() == v1::PIPELINE_STATE_RUNNING);
  CHECK(fixture.Stats().steps() == 0);

  CHECK(table.Delete("p").ok());
  REQUIRE(table.Create(fixture.Spec("sound", 0)).ok());
  Until(table, [&] { return fixture.Stats().steps() > 0; });
  CHECK(fixture.files.hanging() > 0);
  CHECK(table.Delete("p").ok());
  fixture.files.LetGo();
  Until(table, [&] { return fixture.files.hanging() == 0 && fixture.files.open() == 0; });
}

TEST_CASE("fault 28: a creation that meets an opening beyond its deadline is an error") {
  Fixture fixture(UINT64_MAX);
  fixture.files.HangOpenings([](const std::string& path) { return absl::EndsWith(path, "hangs"); });
  PipelineTable& table = *fixture.table;
  const auto failed = table.Create(fixture.Spec("hangs", 100));
  REQUIRE_FALSE(failed.ok());
  CHECK(absl::IsDeadlineExceeded(failed.status()));
  CHECK(absl::StrContains(failed.status().message(), "opening did not return within"));
  CHECK(absl::StrContains(failed.status().message(), fixture.folder / "hangs"));
  REQUIRE(table.Create(fixture.Spec("sound", 100)).ok());
  Until(table, [&] { return fixture.Stats().steps() > 0; });
  CHECK(table.Delete("p").ok());
  fixture.files.LetGo();
  Until(table, [&] { return fixture.files.hanging() == 0 && fixture.files.open() == 0; });
}

TEST_CASE(
    "fault 28: a write that hangs is told, has no deadline, and is left behind by a deletion") {
  test::RecordedDisk disk;
  Fixture fixture(UINT64_MAX);
  fixture.files.set_disk(&disk);
  std::atomic<bool> hangs{true}, is_hanging{false}, has_returned{false};
  disk.OnCreate([&](const std::string& path) {
    const PendingCall call("creating", path, 0, CallKind::kWrite);
    is_hanging = true;
    while (hangs) std::this_thread::yield();
    has_returned = true;
  });
  PipelineTable& table = *fixture.table;
  const std::string kept = "stage { cache { filename: '" + (fixture.folder / "kept") + "' } }";
  REQUIRE(table.Create(fixture.Spec("sound", 100, kept)).ok());
  Until(table, [&] { return fixture.Stats().has_oldest_write(); });
  const v1::PipelineStats stats = fixture.Stats();
  CHECK(stats.oldest_write().doing() == "creating");
  CHECK(absl::StartsWith(stats.oldest_write().file(), fixture.folder / "kept/"));
  CHECK(stats.oldest_write().seconds() >= 1);
  CHECK_FALSE(stats.has_oldest_read());
  CHECK(stats.state() == v1::PIPELINE_STATE_RUNNING);

  CHECK(table.Delete("p").ok());
  REQUIRE(table.Create(fixture.Spec("sound", 100)).ok());
  Until(table, [&] { return fixture.Stats().steps() > 0; });
  CHECK(table.Delete("p").ok());
  CHECK(is_hanging);
  CHECK_FALSE(has_returned);
  hangs = false;
  Until(table, [&] { return has_returned && fixture.files.open() == 0; });
}

TEST_CASE("work within a deadline gives its result, and its errors") {
  const ReadDeadline deadline{100'000'000, std::make_shared<Leftovers>()};
  const auto thread = std::this_thread::get_id();
  const auto elsewhere =
      Within<bool>(deadline, "x", [thread] { return std::this_thread::get_id() != thread; });
  CHECK(*elsewhere);
  const auto here =
      Within<bool>({}, "x", [thread] { return std::this_thread::get_id() == thread; });
  CHECK(*here);
  const auto failed = Within<int>(deadline, "x", [] { return absl::DataLossError("rotten"); });
  CHECK(failed.status() == absl::DataLossError("rotten"));
  CHECK(deadline.leftovers->size() == 0);
}

TEST_CASE(
    "what takes long without a read is waited for, and what is left behind goes when it has "
    "ended") {
  const ReadDeadline deadline{100'000'000, std::make_shared<Leftovers>()};
  const auto slow = Within<int>(deadline, "x", [] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return 3;
  });
  CHECK(*slow == 3);

  std::atomic<bool> returns{false};
  const auto held = std::make_shared<int>(1);
  const absl::Status left = CallWithin(deadline, "x", [&returns, held = held] {
    const std::string path = "a file";
    const PendingCall call("reading", path, 7);
    while (!returns) std::this_thread::yield();
  });
  CHECK(absl::IsDeadlineExceeded(left));
  CHECK(absl::StrContains(left.message(), "(a file, offset 7)"));
  CHECK(held.use_count() == 2);
  CHECK(deadline.leftovers->size() == 1);
  deadline.leftovers->Sweep();
  CHECK(deadline.leftovers->size() == 1);
  returns = true;
  while (deadline.leftovers->size() > 0) deadline.leftovers->Sweep();
  CHECK(held.use_count() == 1);
}

}  // namespace
}  // namespace penstock
