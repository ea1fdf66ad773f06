// Fault 35, of what one pipeline or caller may take from the others.
// Calls end with their callers: what nobody wants any more is not computed to its end.
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/local_file.h"
#include "penstock/v1/control.grpc.pb.h"
#include "server/service/control/pipeline_service.h"
#include "server/service/pipeline/pipeline_table.h"
#include "server/service/socket/event_loop.h"
#include "server/service/state/overrides.h"
#include "server/service/tune/monitor.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock::test {
namespace {

v1::PipelineSpec SpecOf(const std::string& text) {
  v1::SpecSource source;
  source.mutable_text()->set_text(text);
  auto spec = ResolveSource(source);
  REQUIRE(spec.ok());
  return *std::move(spec);
}

// Files of a terabyte whose reads take a millisecond each and are counted, all of the same records.
// They go on until Break(), where every read is an error.
class EndlessFiles final : public FileSystem {
 public:
  // `records` of each file, and how many files there are.
  EndlessFiles(std::string record, uint64_t records, int files)
      : state_(std::make_shared<State>()), num_files_(files) {
    state_->record = std::move(record);
    state_->records = records;
  }

  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override {
    if (!absl::StrContains(path, ".tfrecord") || absl::StrContains(path, "index"))
      return absl::NotFoundError(path);
    return std::make_shared<File>(state_, path);
  }
  absl::StatusOr<std::vector<ListedFile>> List(const std::string&) override {
    std::vector<ListedFile> files;
    for (int i = 0; i < num_files_; ++i)
      files.push_back({absl::StrCat("/endless/", i, ".tfrecord"), state_->size(), {}});
    return files;
  }

  void Break() { state_->broken = true; }
  uint64_t reads() const { return state_->reads; }
  // Whether there are none for a while.
  bool WaitForQuiet() const {
    for (int i = 0; i < 40; ++i) {
      const uint64_t before = reads();
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
      if (reads() == before) return true;
    }
    return false;
  }

 private:
  struct State {
    uint64_t size() const { return record.size() * records; }

    std::string record;
    uint64_t records = 0;
    std::atomic<uint64_t> reads{0};
    std::atomic<bool> broken{false};
  };

  class File final : public RandomAccessFile {
   public:
    File(std::shared_ptr<State> state, std::string path)
        : state_(std::move(state)), path_(std::move(path)) {}
    const std::string& path() const override { return path_; }
    uint64_t size() const override { return state_->size(); }
    absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<uint8_t> out) override {
      if (state_->broken) return absl::UnavailableError("broken");
      ++state_->reads;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::string& record = state_->record;
      for (size_t i = 0; i < out.size(); ++i) out[i] = record[(offset + i) % record.size()];
      return out.size();
    }

   private:
    const std::shared_ptr<State> state_;
    const std::string path_;
  };

  const std::shared_ptr<State> state_;
  const int num_files_;
};

// The frame of a record of so many bytes.
std::string FrameOf(size_t bytes) {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 1, bytes);
  return ReadFile(folder / "a");
}

// Of a caller who goes at the third look.
Unwanted GoesSoon(std::shared_ptr<std::atomic<int>> looks = std::make_shared<std::atomic<int>>(0)) {
  return [looks]() -> absl::Status {
    return ++*looks >= 3 ? absl::CancelledError("the caller has gone") : absl::OkStatus();
  };
}

TEST_CASE("a look-up far into a stream ends with its caller") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 60);
  PipelineTable table(LocalFileSystem(), {});
  const v1::PipelineSpec spec =
      SpecOf("name: 'p' stage { tfrecord { files: '" + folder / "a" +
             "' } } stage { parse_example { feature { key: 'n' int64 {} } } } stage { filter { "
             "predicate: 'n % "
             "5 != 0' } } stage { batch { batch_size: 4 } } stage { repeat {} }");
  const auto checked = table.Check(spec);
  REQUIRE(checked.ok());
  constexpr uint64_t kFar = uint64_t{1} << 40;
  const auto found =
      table.LookUp<RowPlace>(spec, GoesSoon(), [plan = checked->plan](const WalkLimits& limits) {
        return FindRow(plan, "a", 1, kFar, 1000, limits);
      });
  CHECK(absl::IsCancelled(found.status()));
  CHECK(found.status().message() == "the caller has gone");
  const auto shown = table.LookUp<ShownRow>(
      spec, GoesSoon(),
      [plan = checked->plan](const WalkLimits& limits) { return ShowRow(plan, kFar, 0, limits); });
  CHECK(absl::IsCancelled(shown.status()));
}

TEST_CASE("the index that a look-up needs is not made for a caller who has gone") {
  EndlessFiles files(FrameOf(100'000), uint64_t{10} << 20, 1);
  PipelineTable table(files, {});
  const v1::PipelineSpec spec = SpecOf(
      "name: 'p' stage { tfrecord { files: '/endless/*.tfrecord' } } stage { shuffle { global: "
      "true seed: 1 } } "
      "stage "
      "{ parse_example { feature { key: 'n' int64 {} } } } stage { batch { batch_size: 4 } }");
  const auto checked = table.Check(spec);
  INFO(checked.status().ToString());
  REQUIRE(checked.ok());
  const uint64_t before = files.reads();
  const auto shown = table.LookUp<ShownRow>(
      spec, GoesSoon(),
      [plan = checked->plan](const WalkLimits& limits) { return ShowRow(plan, 3, 0, limits); });
  CHECK(shown.status().message() == "the caller has gone");
  CHECK(files.reads() > before);
  CHECK(files.WaitForQuiet());
  files.Break();
}

TEST_CASE("files are not gone through for a caller who has gone") {
  EndlessFiles files(FrameOf(100), 1000, 100'000);
  PipelineTable table(files, {});
  const v1::PipelineSpec spec = SpecOf(
      "name: 'p' stage { tfrecord { files: '/endless/*.tfrecord' } } stage { parse_example { "
      "feature { key: 'n' "
      "int64 "
      "{} } } } stage { batch { batch_size: 4 } }");
  const Unwanted gone = [&files]() -> absl::Status {
    return files.reads() > 10 ? absl::CancelledError("the caller has gone") : absl::OkStatus();
  };
  PipelineOptions options;
  options.unwanted = gone;
  CHECK(table.Create(spec, std::move(options)).status().message() == "the caller has gone");
  CHECK(files.reads() > 10);
  CHECK(files.WaitForQuiet());
  files.Break();
}

// The service alone, for one user.
class Served {
 public:
  explicit Served(const PipelineServiceImpl::LookUpLimits& limits)
      : loop_(*EventLoop::Create()),
        monitor_(*loop_, table_, 1),
        service_(
            table_, monitor_, [] { return 8; },
            [](const grpc::ServerContext&, v1::Right, const std::string&,
               PipelineServiceImpl::Asked) { return absl::OkStatus(); },
            [](const grpc::ServerContext&) { return std::make_optional<Identity>(); }, [] {}) {
    service_.SetLookUpLimits(limits);
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~Served() { server_->Shutdown(); }

  // Asks for a row that nobody comes to.
  grpc::Status ShowFarRow(grpc::ClientContext* context) {
    const auto stub = v1::PipelineService::NewStub(server_->InProcessChannel({}));
    v1::ShowRowRequest request;
    request.mutable_source()->mutable_text()->set_text(
        "name: 'p' stage { counter {} } stage { filter { predicate: 'value >= 0' } } stage { batch "
        "{ "
        "batch_size: 4 } }");
    request.set_step(uint64_t{1} << 40);
    v1::ShowRowResponse response;
    return stub->ShowRow(context, request, &response);
  }

 private:
  PipelineTable table_{LocalFileSystem(), {}};
  const std::unique_ptr<EventLoop> loop_;
  Monitor monitor_;
  PipelineServiceImpl service_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_CASE("a look-up has a deadline") {
  Served served({.time = absl::Milliseconds(200)});
  grpc::ClientContext context;
  const grpc::Status status = served.ShowFarRow(&context);
  CHECK(status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  CHECK(status.error_message() ==
        "the look-up (begin nearer, at a later step or behind a cursor) took longer than 200ms");
}

TEST_CASE("only so many look-ups run at a time, and a place is free again behind each") {
  Served served({.at_a_time = 1});
  // Asks again until it ends with that code; the message.
  const auto until = [&served](grpc::StatusCode code) {
    grpc::Status status;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (status.error_code() != code && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(300));
      status = served.ShowFarRow(&context);
    }
    CHECK(status.error_code() == code);
    return status.error_message();
  };
  std::mutex mutex;
  std::unique_ptr<grpc::ClientContext> first;  // under mutex
  bool is_over = false;                        // under mutex
  // Each time that somebody else has the place, it asks again.
  std::thread looks([&] {
    for (;;) {
      grpc::ClientContext* context;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (is_over) return;
        first = std::make_unique<grpc::ClientContext>();
        context = first.get();
      }
      (void)served.ShowFarRow(context);
    }
  });
  const std::string refused = until(grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK(absl::StrContains(
      refused, "too many look-ups at a time: at most 1 run, and the last of them is for"));
  {
    const std::lock_guard<std::mutex> lock(mutex);
    is_over = true;
    first->TryCancel();
  }
  looks.join();
  // It goes through its stream until it looks whether it is still wanted.
  until(grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_CASE("what a look-up finds in time is told") {
  PipelineTable table(LocalFileSystem(), {});
  const v1::PipelineSpec spec =
      SpecOf("name: 'p' stage { range { stop: 100 } } stage { batch { batch_size: 4 } }");
  const auto checked = table.Check(spec, [] { return absl::OkStatus(); });
  REQUIRE(checked.ok());
  const auto shown = table.LookUp<ShownRow>(
      spec, [] { return absl::OkStatus(); },
      [plan = checked->plan](const WalkLimits& limits) { return ShowRow(plan, 3, 1, limits); });
  REQUIRE(shown.ok());
  CHECK(shown->features[0].name == "value");
}

TEST_CASE("a spec that asks for more memory than it may have is refused") {
  PipelineTable table(LocalFileSystem(), {});
  v1::MemoryLimits limits;
  limits.set_max_pipeline_work_bytes(32 << 20);
  table.SetMemoryLimits(limits);
  const v1::PipelineSpec spec = SpecOf(
      "name: 'p' max_work_bytes: 100000000 stage { range { stop: 100 } } stage { batch { "
      "batch_size: 4 } "
      "}");
  CHECK(absl::IsInvalidArgument(table.Check(spec).status()));
  CHECK(absl::IsInvalidArgument(table.Create(spec).status()));
  CHECK(table.List().empty());
}

}  // namespace
}  // namespace penstock::test
