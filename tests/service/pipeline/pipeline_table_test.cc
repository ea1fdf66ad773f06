#include "server/service/pipeline/pipeline_table.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "server/service/state/pipeline_journal.h"
#include "server/service/state/text_proto.h"
#include "tests/service/counting.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock {
namespace {

v1::PipelineSpec Counter(const test::ScratchFolder& folder, const std::string& name) {
  // A shard that is written again is another one, to a pipeline that reads it.
  if (!std::filesystem::exists(folder / "n.tfrecord"))
    test::WriteShard(folder / "n.tfrecord", 0, 40);
  return test::CountingSpec(folder / "n.tfrecord", name, "stage { repeat {} }");
}

v1::WorkerDefaults OneWorker() {
  v1::WorkerDefaults defaults;
  defaults.set_workers(1);
  return defaults;
}

TEST_CASE("pipelines are created, found, listed by name and deleted") {
  test::ScratchFolder folder;
  PipelineTable table(LocalFileSystem(), OneWorker());
  REQUIRE(table.Create(Counter(folder, "flowers")).ok());
  REQUIRE(table.Create(Counter(folder, "chess")).ok());
  CHECK(table.Create(Counter(folder, "chess")).status().code() == absl::StatusCode::kAlreadyExists);
  const auto list = table.List();
  REQUIRE(list.size() == 2);
  CHECK(list[0]->name() == "chess");
  CHECK(list[1]->name() == "flowers");
  CHECK(table.Find("chess").ok());
  CHECK(table.Delete("chess").ok());
  CHECK(std::string(table.Delete("chess").message()) == "no pipeline \"chess\"; there are flowers");
  CHECK(table.Find("flowers").ok());
  CHECK(table.Delete("flowers").ok());
  CHECK(std::string(table.Find("flowers").status().message()) ==
        "no pipeline \"flowers\"; there are none: start one with penstock create SPEC");
}

TEST_CASE("no user has so many pipelines that others may have none") {
  test::ScratchFolder folder;
  PipelineTable table(LocalFileSystem(), OneWorker());
  v1::PipelineSpec spec;
  REQUIRE(ParseTextProto("stage { range { stop: 2 } } stage { batch { batch_size: 1 } } workers: 1",
                         "spec", &spec)
              .ok());
  int number = 0;
  const auto create = [&](uid_t user) {
    PipelineOptions options;
    options.owner.uid = user;
    spec.set_name("p" + std::to_string(number++));
    return table.Create(spec, options).status();
  };
  for (int i = 0; i < 224; ++i) REQUIRE(create(54321).ok());
  const absl::Status refused = create(54321);
  CHECK(refused.code() == absl::StatusCode::kResourceExhausted);
  CHECK(std::string(refused.message()) ==
        "too many pipelines: limit 256, and the last eighth is for users who have less than that; "
        "user 54321 has 224");
  CHECK(create(54322).ok());
  // Whom the daemon works for may have all.
  for (int i = 0; i < 31; ++i) REQUIRE(create(geteuid()).ok());
  CHECK(std::string(create(54322).message()) == "too many pipelines: limit 256");
}

TEST_CASE("fault 58: of many creations of one name one succeeds") {
  test::ScratchFolder folder;
  PipelineTable table(LocalFileSystem(), OneWorker());
  const v1::PipelineSpec spec = Counter(folder, "x");
  std::atomic<int> created{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto pipeline = table.Create(spec);
      if (pipeline.ok()) ++created;
      if (pipeline.status().code() == absl::StatusCode::kAlreadyExists) ++refused;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(created == 1);
  CHECK(refused == 7);
}

TEST_CASE("a failed creation leaves the name free") {
  test::ScratchFolder folder;
  PipelineTable table(LocalFileSystem(), OneWorker());
  v1::PipelineSpec bad = Counter(folder, "x");
  bad.mutable_stage(2)->mutable_batch()->set_batch_size(0);
  CHECK(table.Create(bad).status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(table.List().empty());
  CHECK(table.Create(Counter(folder, "x")).ok());
}

TEST_CASE("a closed table creates nothing") {
  test::ScratchFolder folder;
  PipelineTable table(LocalFileSystem(), OneWorker());
  REQUIRE(table.Create(Counter(folder, "x")).ok());
  table.Close(absl::UnavailableError("stopping"));
  CHECK(table.List().empty());
  CHECK(table.Create(Counter(folder, "y")).status().code() == absl::StatusCode::kUnavailable);
}

// Files that call back before they are opened.
class TellingFiles : public FileSystem {
 public:
  explicit TellingFiles(std::function<void()> opening) : opening_(std::move(opening)) {}
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override {
    opening_();
    return LocalFileSystem().Open(path);
  }
  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override {
    return LocalFileSystem().List(pattern);
  }

 private:
  const std::function<void()> opening_;
};

TEST_CASE("a creation that is asked for again while it is being made is not refused for good") {
  test::ScratchFolder folder;
  const v1::PipelineSpec spec = Counter(folder, "x");
  PipelineTable* opened = nullptr;
  std::vector<absl::StatusCode> meanwhile;
  const auto create = [&](const std::string& id) {
    PipelineOptions options;
    options.request_id = id;
    return opened->Create(spec, std::move(options));
  };
  TellingFiles files([&] {
    if (!meanwhile.empty()) return;
    for (const char* const id : {"one", "two", ""}) meanwhile.push_back(create(id).status().code());
  });
  PipelineTable table(files, OneWorker());
  opened = &table;
  const auto made = create("one");
  REQUIRE(made.ok());
  CHECK(meanwhile == std::vector<absl::StatusCode>{absl::StatusCode::kUnavailable,
                                                   absl::StatusCode::kAlreadyExists,
                                                   absl::StatusCode::kAlreadyExists});
  CHECK(*create("one") == *made);
}

TEST_CASE("a creation that a stopping daemon refuses does not come back") {
  test::ScratchFolder folder;
  const v1::PipelineSpec spec = Counter(folder, "x");
  PipelineJournal journal(*StateFolder::Open(folder / "state"));
  PipelineTable* opened = nullptr;
  TellingFiles files([&opened] {
    if (opened != nullptr) opened->Close(absl::UnavailableError("stopping"));
  });
  PipelineTable table(files, OneWorker(), &journal);
  opened = &table;
  CHECK(table.Create(spec).status().code() == absl::StatusCode::kUnavailable);
  CHECK(journal.Load().empty());
}

TEST_CASE("a pipeline of one of several hosts comes back as that") {
  test::ScratchFolder folder;
  PipelineJournal journal(*StateFolder::Open(folder / "state"));
  const World third = {3, 2};
  const auto is_third = [](const auto& message) {
    return message.world().hosts() == 3 && message.world().host() == 2;
  };
  {
    PipelineTable table(LocalFileSystem(), OneWorker(), &journal);
    PipelineOptions options;
    options.world = third;
    REQUIRE(table.Create(Counter(folder, "x"), std::move(options)).ok());
    REQUIRE(table.Create(Counter(folder, "alone")).ok());
  }
  PipelineTable table(LocalFileSystem(), OneWorker(), &journal);
  CHECK(table.ExpectKept().size() == 2);
  const auto pipeline = table.BringBack("x");
  REQUIRE(pipeline.ok());
  CHECK(is_third((*pipeline)->Stats()));
  const auto alone = table.BringBack("alone");
  REQUIRE(alone.ok());
  CHECK_FALSE((*alone)->Stats().has_world());
}

TEST_CASE("hosts of a world take a change of batches from a named step on alone") {
  test::ScratchFolder folder;
  PipelineOptions options;
  options.defaults = OneWorker();
  options.world = {2, 1};
  const auto pipeline = Pipeline::Create(Counter(folder, "x"), options, LocalFileSystem());
  REQUIRE(pipeline.ok());
  const auto refusal = [&](const RequestedChange& requested) {
    const absl::Status status = (*pipeline)->Update(requested).status();
    CHECK(absl::IsFailedPrecondition(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("host 1 of 2"));
  };
  RequestedChange skip;
  skip.change.set_skip_steps(1);
  refusal(skip);
  RequestedChange next_epoch = skip;
  next_epoch.at_next_epoch = true;
  refusal(next_epoch);
  RequestedChange withdrawn;
  withdrawn.withdraw = true;
  refusal(withdrawn);
  skip.step = 1'000'000;
  CHECK((*pipeline)->Update(skip).ok());
  // What has no effect on the batches is each host's own affair.
  RequestedChange numbers;
  numbers.change.set_workers(2);
  CHECK((*pipeline)->Update(numbers).ok());
  (*pipeline)->Close(absl::CancelledError("the end"));
}

TEST_CASE("a refused update leaves every number as it was") {
  test::ScratchFolder folder;
  v1::PipelineSpec spec = Counter(folder, "x");
  spec.mutable_ring()->set_slots(16);
  PipelineOptions options;
  options.defaults = OneWorker();
  options.write_state = [](const KeptState&) { return absl::ResourceExhaustedError("disk full"); };
  const auto pipeline = Pipeline::Create(spec, options, LocalFileSystem());
  REQUIRE(pipeline.ok());
  const uint32_t slots = (*pipeline)->Stats().slots();
  RequestedChange requested;
  // Enough for fewer slots, which the change does not name.
  requested.change.set_memory_bytes(400'000);
  requested.change.set_read_ahead_bytes(1 << 20);
  CHECK((*pipeline)->Update(requested).status().code() == absl::StatusCode::kResourceExhausted);
  CHECK((*pipeline)->Stats().slots() == slots);
  (*pipeline)->Close(absl::CancelledError("the end"));
}

TEST_CASE("the memory limit of a pipeline is its own, though another one of its name is closed") {
  test::ScratchFolder folder;
  v1::PipelineSpec spec = Counter(folder, "x");
  spec.mutable_ring()->set_slots(16);
  PipelineOptions options;
  options.defaults = OneWorker();
  options.memory = std::make_shared<MemoryBudget>();
  const auto deleted = *Pipeline::Create(spec, options, LocalFileSystem());
  const auto pipeline = *Pipeline::Create(spec, options, LocalFileSystem());
  RequestedChange requested;
  requested.change.set_memory_bytes(200'000);
  REQUIRE(deleted->Update(requested).ok());
  REQUIRE(pipeline->Update(requested).ok());
  deleted->Close(absl::NotFoundError("deleted"));
  const auto attached = pipeline->Attach(Newcomer());
  REQUIRE(attached.ok());
  const ring::Status refused = attached->stream->writer().SetSlots(60);
  CHECK(refused.code == ring::Code::kResourceExhausted);
  CHECK_THAT(refused.message, Catch::Contains("memory_bytes"));
}

TEST_CASE("a pipeline that was deleted is not deleted again under another one's name") {
  test::ScratchFolder folder;
  PipelineTable table(LocalFileSystem(), OneWorker());
  const auto deleted = *table.Create(Counter(folder, "x"));
  REQUIRE(table.Delete("x", nullptr, deleted.get()).ok());
  const auto pipeline = *table.Create(Counter(folder, "x"));
  CHECK(absl::IsNotFound(table.Delete("x", nullptr, deleted.get())));
  CHECK(*table.Find("x") == pipeline);
}

TEST_CASE("names and numbers of a spec are checked") {
  test::ScratchFolder folder;
  for (const char* name : {"a", "A.b_c-9", "9", "aaaaaaaaaaaaaaaaaaaa"}) {
    CHECK(CheckPipelineName(name).ok());
  }
  for (const char* name : {"", ".a", "-a", "_a", "a b", "a/b", "\xc3\xa4"}) {
    CHECK(CheckPipelineName(name).code() == absl::StatusCode::kInvalidArgument);
  }
  CHECK(CheckPipelineName(std::string(64, 'a')).ok());
  CHECK_FALSE(CheckPipelineName(std::string(65, 'a')).ok());

  v1::PipelineSpec spec = Counter(folder, "x");
  spec.set_workers(1025);
  CHECK(CheckPipeline(spec, {}, LocalFileSystem()).status().message() ==
        "workers out of range: 1025 is not in [0, 1024]");
  spec.set_workers(0);
  for (const int slots : {-1, 1, 65}) {
    spec.mutable_ring()->set_slots(slots);
    CHECK_FALSE(CheckPipeline(spec, {}, LocalFileSystem()).ok());
  }
  spec.mutable_ring()->set_slots(2);
  const auto checked = CheckPipeline(spec, OneWorker(), LocalFileSystem());
  REQUIRE(checked.ok());
  CHECK(checked->slots == 2);
  CHECK(checked->workers == 1);
}

TEST_CASE("a description shows what was derived") {
  test::ScratchFolder folder;
  const auto checked = CheckPipeline(Counter(folder, "x"), OneWorker(), LocalFileSystem());
  REQUIRE(checked.ok());
  const v1::Pipeline pipeline = Describe(*checked);
  CHECK(pipeline.name() == "x");
  CHECK(pipeline.spec().stage(2).name() == "batch");
  CHECK(pipeline.spec().workers() == 1);
  CHECK(pipeline.spec().ring().slots() == 8);
  CHECK(pipeline.endless());
  CHECK(pipeline.batch_rows() == 4);
  CHECK(pipeline.slot_bytes() == 32);
  REQUIRE(pipeline.element_size() == 1);
  CHECK(pipeline.element(0).name() == "n");
  CHECK(pipeline.element(0).dtype() == v1::DATA_TYPE_INT64);
  REQUIRE(pipeline.element(0).shape_size() == 1);
  CHECK(pipeline.element(0).shape(0) == -1);
}

}  // namespace
}  // namespace penstock
