// The calls that go on telling: what they tell, who is told, and their limit.

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/local_file.h"
#include "server/service/control/pipeline_service.h"
#include "server/service/pipeline/pipeline_table.h"
#include "server/service/tune/monitor.h"
#include "server/service/watch/event_log.h"
#include "tests/service/test_daemon.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

using test::TestDaemon;

v1::GroupStats OnlyGroup(v1::PipelineService::StubInterface& stub) {
  grpc::ClientContext context;
  v1::ListGroupsRequest request;
  request.set_name("counter");
  v1::ListGroupsResponse response;
  REQUIRE(stub.ListGroups(&context, request, &response).ok());
  REQUIRE(response.groups_size() == 1);
  return response.groups(0);
}

TEST_CASE("stats come again and again, until the pipeline is deleted") {
  TestDaemon daemon;
  REQUIRE(daemon.CreateCounter("counter", 8).ok());
  const auto stub = daemon.Stub();
  grpc::ClientContext context;
  v1::WatchStatsRequest request;
  request.set_name("counter");
  request.set_interval_ms(50);
  const auto reader = stub->WatchStats(&context, request);
  v1::WatchStatsResponse response;
  for (int i = 0; i < 3; ++i) {
    REQUIRE(reader->Read(&response));
    CHECK(response.stats().name() == "counter");
  }
  {
    grpc::ClientContext other;
    v1::DeletePipelineRequest gone;
    gone.set_name("counter");
    v1::DeletePipelineResponse answer;
    REQUIRE(stub->DeletePipeline(&other, gone, &answer).ok());
  }
  while (reader->Read(&response)) {
  }
  CHECK(reader->Finish().error_code() == grpc::StatusCode::NOT_FOUND);
}

TEST_CASE("a watch that looks seldom hears of the end at once, and leaves its place to the next") {
  v1::DaemonConfig config;
  config.mutable_connection_limits()->set_max_streams(8);
  TestDaemon daemon(config);
  const auto stub = daemon.Stub();
  // More than there are places.
  for (int i = 0; i < 12; ++i) {
    REQUIRE(daemon.CreateCounter("counter", 8).ok());
    grpc::ClientContext context;
    // Turns a hang into a failure.
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    v1::WatchStatsRequest request;
    request.set_name("counter");
    request.set_interval_ms(3'600'000);
    const auto reader = stub->WatchStats(&context, request);
    v1::WatchStatsResponse response;
    REQUIRE(reader->Read(&response));
    grpc::ClientContext other;
    v1::DeletePipelineRequest gone;
    gone.set_name("counter");
    v1::DeletePipelineResponse answer;
    REQUIRE(stub->DeletePipeline(&other, gone, &answer).ok());
    CHECK_FALSE(reader->Read(&response));
    CHECK(reader->Finish().error_code() == grpc::StatusCode::NOT_FOUND);
  }
}

TEST_CASE("a watch of nothing, and one in an impossible interval, are refused") {
  TestDaemon daemon;
  REQUIRE(daemon.CreateCounter("counter", 8).ok());
  const auto stub = daemon.Stub();
  const struct {
    std::string name;
    int interval_ms;
    grpc::StatusCode code;
  } kCases[] = {
      {"none", 0, grpc::StatusCode::NOT_FOUND},
      {"counter", 49, grpc::StatusCode::INVALID_ARGUMENT},
      {"counter", -1, grpc::StatusCode::INVALID_ARGUMENT},
      {"counter", 3'600'001, grpc::StatusCode::INVALID_ARGUMENT},
  };
  for (const auto& one : kCases) {
    CAPTURE(one.name, one.interval_ms);
    grpc::ClientContext context;
    v1::WatchStatsRequest request;
    request.set_name(one.name);
    request.set_interval_ms(one.interval_ms);
    const auto reader = stub->WatchStats(&context, request);
    v1::WatchStatsResponse response;
    CHECK_FALSE(reader->Read(&response));
    CHECK(reader->Finish().error_code() == one.code);
  }
  grpc::ClientContext context;
  v1::WatchEventsRequest request;
  request.set_name("none");
  request.set_follow(true);
  const auto reader = stub->WatchEvents(&context, request);
  v1::WatchEventsResponse response;
  CHECK_FALSE(reader->Read(&response));
  CHECK(reader->Finish().error_code() == grpc::StatusCode::NOT_FOUND);
}

TEST_CASE("events tell what happens to a pipeline, in its order") {
  TestDaemon daemon;
  const auto stub = daemon.Stub();
  grpc::ClientContext context;
  v1::WatchEventsRequest request;
  request.set_follow(true);
  REQUIRE(daemon.CreateCounter("counter", 8).ok());
  REQUIRE(daemon.CreateCounter("other", 8).ok());
  request.set_name("counter");
  const auto reader = stub->WatchEvents(&context, request);
  std::vector<v1::Event> seen;
  const auto read_until = [&](v1::EventKind kind) {
    v1::WatchEventsResponse response;
    while (seen.empty() || seen.back().kind() != kind) {
      REQUIRE(reader->Read(&response));
      CHECK(response.lost() == 0);
      seen.insert(seen.end(), response.events().begin(), response.events().end());
    }
  };
  read_until(v1::EVENT_KIND_ENDED);  // eight records fit the ring
  std::unique_ptr<ring::Reader> consumer;
  REQUIRE(daemon.Attach("counter", &consumer).ok());
  read_until(v1::EVENT_KIND_ATTACHED);
  consumer.reset();
  read_until(v1::EVENT_KIND_LEFT);
  {
    grpc::ClientContext other;
    v1::PausePipelineRequest pause;
    pause.set_name("counter");
    v1::PausePipelineResponse answer;
    REQUIRE(stub->PausePipeline(&other, pause, &answer).ok());
  }
  {
    grpc::ClientContext other;
    v1::ResumePipelineRequest resume;
    resume.set_name("counter");
    v1::ResumePipelineResponse answer;
    REQUIRE(stub->ResumePipeline(&other, resume, &answer).ok());
  }
  {
    grpc::ClientContext other;
    v1::DeletePipelineRequest gone;
    gone.set_name("counter");
    v1::DeletePipelineResponse answer;
    REQUIRE(stub->DeletePipeline(&other, gone, &answer).ok());
  }
  read_until(v1::EVENT_KIND_DELETED);
  std::vector<v1::EventKind> kinds;
  uint64_t number = 0;
  for (const v1::Event& event : seen) {
    kinds.push_back(event.kind());
    CHECK(event.pipeline() == "counter");
    CHECK(event.number() > number);
    number = event.number();
  }
  CHECK(kinds == std::vector<v1::EventKind>{v1::EVENT_KIND_CREATED, v1::EVENT_KIND_ENDED,
                                            v1::EVENT_KIND_ATTACHED, v1::EVENT_KIND_LEFT,
                                            v1::EVENT_KIND_PAUSED, v1::EVENT_KIND_RESUMED,
                                            v1::EVENT_KIND_DELETED});
  CHECK(seen[2].consumer().group() == "default");
  context.TryCancel();
  reader->Finish();

  // What is past is told too, and ends.
  grpc::ClientContext past_context;
  v1::WatchEventsRequest past;
  past.set_name("counter");
  past.set_after(seen[4].number());
  const auto past_reader = stub->WatchEvents(&past_context, past);
  std::vector<uint64_t> numbers;
  v1::WatchEventsResponse response;
  while (past_reader->Read(&response)) {
    for (const v1::Event& event : response.events()) numbers.push_back(event.number());
  }
  CHECK(past_reader->Finish().ok());
  CHECK(numbers == std::vector<uint64_t>{seen[5].number(), seen[6].number()});
}

TEST_CASE("fault 57: calls that go on are limited, and leave room for others") {
  v1::DaemonConfig config;
  config.mutable_connection_limits()->set_max_streams(20);
  config.mutable_connection_limits()->set_max_control_connections(20);
  TestDaemon daemon(config);
  REQUIRE(daemon.CreateCounter("counter", 8).ok());
  struct Watch {
    std::unique_ptr<v1::PipelineService::Stub> stub;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::WatchStatsResponse>> reader;
  };
  std::vector<std::unique_ptr<Watch>> watches;
  v1::WatchStatsRequest request;
  request.set_name("counter");
  request.set_interval_ms(3'600'000);
  v1::WatchStatsResponse response;
  // One connection takes 16 calls. The last two places are for users who have less than that.
  for (int i = 0; i < 18; ++i) {
    auto watch = std::make_unique<Watch>();
    if (i % 10 == 0) {
      watch->stub = daemon.Stub();
    }
    auto& stub = i % 10 == 0 ? watch->stub : watches[i / 10 * 10]->stub;
    watch->reader = stub->WatchStats(&watch->context, request);
    REQUIRE(watch->reader->Read(&response));
    watches.push_back(std::move(watch));
  }
  const auto stub = daemon.Stub();
  {
    grpc::ClientContext context;
    const auto reader = stub->WatchStats(&context, request);
    CHECK_FALSE(reader->Read(&response));
    CHECK(reader->Finish().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  {
    grpc::ClientContext context;
    v1::GetStatsRequest get;
    get.set_name("counter");
    v1::GetStatsResponse answer;
    CHECK(stub->GetStats(&context, get, &answer).ok());
  }
  // A stop does not wait for them.
  CHECK(daemon.Stop().ok());
  for (const auto& watch : watches) {
    CHECK_FALSE(watch->reader->Read(&response));
    CHECK(watch->reader->Finish().error_code() == grpc::StatusCode::UNAVAILABLE);
  }
}

TEST_CASE("a watch ends with the right to it, and who finds no place for one is counted") {
  PipelineTable table(LocalFileSystem(), {});
  v1::PipelineSpec spec;
  spec.set_name("p");
  spec.add_stage()->mutable_counter();
  spec.add_stage()->mutable_batch()->set_batch_size(4);
  const auto created = table.Create(spec);
  INFO(created.status().ToString());
  REQUIRE(created.ok());
  const auto loop = *EventLoop::Create();
  Monitor monitor(*loop, table, 1);
  std::atomic<bool> may{true};
  std::atomic<int> no_places{0};
  PipelineServiceImpl service(
      table, monitor, [] { return 1; },
      [&may](const grpc::ServerContext&, v1::Right, const std::string&,
             PipelineServiceImpl::Asked) {
        return may ? absl::OkStatus() : absl::PermissionDeniedError("no");
      },
      [](const grpc::ServerContext&) { return std::make_optional<Identity>(); },
      [&no_places] { ++no_places; });
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto stub = v1::PipelineService::NewStub(server->InProcessChannel({}));
  v1::WatchStatsRequest request;
  request.set_name("p");
  request.set_interval_ms(3'600'000);
  v1::WatchStatsResponse response;
  grpc::ClientContext context;
  // Turns a hang into a failure.
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
  const auto reader = stub->WatchStats(&context, request);
  REQUIRE(reader->Read(&response));
  {
    grpc::ClientContext second;
    const auto refused = stub->WatchStats(&second, request);
    CHECK_FALSE(refused->Read(&response));
    CHECK(refused->Finish().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  CHECK(no_places == 1);
  may = false;
  CHECK_FALSE(reader->Read(&response));
  CHECK(reader->Finish().error_code() == grpc::StatusCode::PERMISSION_DENIED);
  server->Shutdown();
  table.Close(absl::CancelledError("the end"));
}

TEST_CASE("a file whose name is not UTF-8 is told, and hides nothing else") {
  TestDaemon daemon;
  test::WriteFile(daemon.folder() / "caf\xe9.tfrecord", std::string(100, 'x'));
  v1::CreatePipelineRequest create;
  create.mutable_source()->mutable_text()->set_text(
      "name: 'p' stage { tfrecord { files: 'caf*.tfrecord' damage { on_damage: SKIP_SHARD } } }"
      " stage { parse_example { feature { key: 'n' int64 {} } } }"
      " stage { batch { batch_size: 4 } }");
  create.mutable_source()->set_base_directory(daemon.folder().path());
  v1::CreatePipelineResponse created;
  const auto stub = daemon.Stub();
  grpc::ClientContext create_context;
  REQUIRE(stub->CreatePipeline(&create_context, create, &created).ok());
  v1::ListSkippedResponse skipped;
  while (skipped.places().empty()) {
    grpc::ClientContext context;
    v1::ListSkippedRequest request;
    request.set_name("p");
    const grpc::Status status = stub->ListSkipped(&context, request, &skipped);
    INFO(status.error_message());
    REQUIRE(status.ok());
  }
  CHECK(absl::EndsWith(skipped.places(0).file(), "/caf\\xe9.tfrecord"));
  grpc::ClientContext context;
  v1::WatchEventsRequest request;
  request.set_follow(true);
  const auto reader = stub->WatchEvents(&context, request);
  v1::WatchEventsResponse heard;
  bool is_told = false;
  while (!is_told) {
    REQUIRE(reader->Read(&heard));
    for (const v1::Event& event : heard.events())
      is_told = is_told || absl::StrContains(event.text(), "/caf\\xe9.tfrecord");
  }
  context.TryCancel();

  test::WriteShard(daemon.folder() / "sound\xe9.tfrecord", 0, 8);
  v1::FindRecordsRequest find;
  *find.mutable_source() = create.source();
  find.mutable_source()->mutable_text()->set_text(
      "name: 'q' stage { tfrecord { files: 'sound*.tfrecord' } }"
      " stage { parse_example { feature { key: 'n' int64 {} } } }"
      " stage { batch { batch_size: 4 } }");
  v1::FindRecordsResponse found;
  grpc::ClientContext find_context;
  const grpc::Status status = stub->FindRecords(&find_context, find, &found);
  INFO(status.error_message());
  REQUIRE(status.ok());
  REQUIRE(found.records_size() == 1);
  CHECK(absl::EndsWith(found.records(0).file(), "/sound\\xe9.tfrecord"));
}

TEST_CASE("groups are listed with their modes and what was said of slow consumers") {
  TestDaemon daemon;
  REQUIRE(daemon.CreateCounter("counter", 40, " stage { repeat {} }").ok());
  std::unique_ptr<ring::Reader> first, second;
  REQUIRE(daemon.Attach("counter", &first).ok());
  REQUIRE(daemon.Attach("counter", &second).ok());
  ring::Lease lease;
  REQUIRE(first->Next(UINT64_MAX, &lease) == ring::Reader::Result::kBatch);
  const auto stub = daemon.Stub();
  {
    grpc::ClientContext context;
    v1::UpdateGroupRequest request;
    request.set_name("counter");
    request.set_group("default");
    request.set_slow(v1::SLOW_POLICY_SKIP);
    v1::UpdateGroupResponse response;
    REQUIRE(stub->UpdateGroup(&context, request, &response).ok());
  }
  const v1::GroupStats group = OnlyGroup(*stub);
  CHECK(group.name() == "default");
  CHECK(group.mode() == "broadcast");
  CHECK(group.consumers() == 2);
  CHECK(group.first_position() == 0);
  CHECK(group.last_position() == 1);
  CHECK(group.lag() >= 1);
  CHECK(group.slow() == v1::SLOW_POLICY_SKIP);
}

TEST_CASE("who has left is neither counted nor waited for, though it still holds a batch") {
  TestDaemon daemon;
  REQUIRE(daemon.CreateCounter("counter", 40, " stage { repeat {} }").ok());
  const auto stub = daemon.Stub();
  v1::DrainPipelineResponse drained;
  const auto drain = [&] {
    grpc::ClientContext context;
    v1::DrainPipelineRequest request;
    request.set_name("counter");
    request.set_timeout_ms(20'000);
    return stub->DrainPipeline(&context, request, &drained).error_message();
  };
  std::unique_ptr<ring::Reader> left, stays;
  REQUIRE(daemon.Attach("counter", &left).ok());
  ring::Lease held, lease;
  REQUIRE(left->Next(UINT64_MAX, &held) == ring::Reader::Result::kBatch);
  left->Leave();
  CHECK(drain() == "");
  // What nobody has taken is there for whoever comes.
  CHECK(drained.step() == 1);
  CHECK_FALSE(drained.cursor().empty());
  REQUIRE(daemon.Attach("counter", &stays).ok());
  std::future<std::string> draining = std::async(std::launch::async, drain);
  while (draining.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    if (stays->Next(1'000'000, &lease) == ring::Reader::Result::kBatch) stays->Release(lease);
  }
  CHECK(draining.get() == "");
  CHECK(drained.step() == stays->position());
  const v1::GroupStats group = OnlyGroup(*stub);
  CHECK(group.consumers() == 1);
  CHECK(group.first_position() == stays->position());
  CHECK(group.leases() == 1);
}

}  // namespace
}  // namespace penstock
