// Pipelines of one of several hosts, as a daemon makes, tells, divides anew and brings back.

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/file.h"
#include "server/service/pipeline/pipeline_table.h"
#include "server/service/state/pipeline_journal.h"
#include "tests/service/counting.h"
#include "tests/service/test_daemon.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock {
namespace {

using test::TestDaemon;
using Stub = v1::PipelineService::Stub;

v1::World WorldOf(uint32_t hosts, uint32_t host, uint32_t fewest_hosts = 0) {
  v1::World world;
  world.set_hosts(hosts);
  world.set_host(host);
  world.set_fewest_hosts(fewest_hosts);
  return world;
}

// Batches of four of the numbers from 0 on, of which a host has its rows.
grpc::Status Create(const TestDaemon& daemon, const v1::World& world,
                    v1::CreatePipelineResponse* response, const std::string& name = "counter") {
  v1::CreatePipelineRequest request;
  request.mutable_source()->mutable_text()->set_text(
      "name: '" + name +
      "' stage { range { stop: 4000 } } stage { batch { batch_size: 4 } } stage { repeat {} }");
  *request.mutable_world() = world;
  grpc::ClientContext context;
  return daemon.Stub()->CreatePipeline(&context, request, response);
}

grpc::Status Create(const TestDaemon& daemon, const v1::World& world) {
  v1::CreatePipelineResponse response;
  return Create(daemon, world, &response);
}

v1::Pipeline Get(const TestDaemon& daemon, const std::string& name = "counter") {
  v1::GetPipelineRequest request;
  v1::GetPipelineResponse response;
  request.set_name(name);
  grpc::ClientContext context;
  REQUIRE(daemon.Stub()->GetPipeline(&context, request, &response).ok());
  return response.pipeline();
}

v1::UpdatePipelineRequest Divide(const v1::World& world, uint64_t step) {
  v1::UpdatePipelineRequest request;
  request.set_name("counter");
  request.set_step(step);
  *request.mutable_world() = world;
  return request;
}

grpc::Status Update(const TestDaemon& daemon, const v1::UpdatePipelineRequest& request,
                    v1::UpdatePipelineResponse* response) {
  grpc::ClientContext context;
  return daemon.Stub()->UpdatePipeline(&context, request, response);
}

grpc::Status Update(const TestDaemon& daemon, const v1::UpdatePipelineRequest& request) {
  v1::UpdatePipelineResponse response;
  return Update(daemon, request, &response);
}

// The numbers that the next step has for this host.
std::vector<int64_t> Next(ring::Reader& reader) {
  ring::Lease lease;
  REQUIRE(reader.Next(60'000'000'000, &lease) == ring::Reader::Result::kBatch);
  std::vector<int64_t> numbers(lease.rows);
  std::memcpy(numbers.data(), lease.data + reader.tensors()[0].offset,
              numbers.size() * sizeof(int64_t));
  reader.Release(lease);
  return numbers;
}

std::vector<int64_t> RowsOf(int64_t step, int64_t first, int64_t count) {
  std::vector<int64_t> rows;
  for (int64_t row = first; row < first + count; ++row) rows.push_back((step % 1000) * 4 + row);
  return rows;
}

bool IsWorld(const v1::World& world, uint32_t hosts, uint32_t host) {
  return world.hosts() == hosts && world.host() == host;
}

TEST_CASE(
    "a pipeline of one of several hosts is told so in every answer, and resumes in another world") {
  TestDaemon daemon;
  v1::CreatePipelineResponse created;
  REQUIRE(Create(daemon, WorldOf(4, 1), &created).ok());
  CHECK(IsWorld(created.pipeline().world(), 4, 1));
  CHECK(created.pipeline().batch_rows() == 4);
  CHECK(IsWorld(Get(daemon).world(), 4, 1));
  {
    v1::ListPipelinesRequest request;
    v1::ListPipelinesResponse response;
    grpc::ClientContext context;
    REQUIRE(daemon.Stub()->ListPipelines(&context, request, &response).ok());
    REQUIRE(response.pipelines_size() == 1);
    CHECK(IsWorld(response.pipelines(0).world(), 4, 1));
  }
  std::unique_ptr<ring::Reader> reader;
  REQUIRE(daemon.Attach("counter", &reader).ok());
  ring::Lease lease;
  REQUIRE(reader->Next(60'000'000'000, &lease) == ring::Reader::Result::kBatch);
  const std::string cursor(reinterpret_cast<const char*>(lease.cursor), lease.cursor_bytes);
  CHECK(lease.rows == 1);
  reader->Release(lease);
  CHECK(Next(*reader) == RowsOf(1, 1, 1));

  // Behind its first step, as the third of three others.
  v1::CreatePipelineRequest request;
  request.mutable_source()->mutable_text()->set_text(
      "name: 'third' stage { range { stop: 4000 } } stage { batch { batch_size: 4 } } stage { "
      "repeat {} }");
  *request.mutable_world() = WorldOf(3, 2);
  request.set_cursor(cursor);
  grpc::ClientContext context;
  REQUIRE(daemon.Stub()->CreatePipeline(&context, request, &created).ok());
  std::unique_ptr<ring::Reader> third;
  REQUIRE(daemon.Attach("third", &third).ok());
  CHECK(Next(*third) == RowsOf(1, 2, 2));
}

TEST_CASE("worlds that none of the batches can have are refused at creation") {
  TestDaemon daemon;
  const auto refusal = [&](const v1::World& world) {
    const grpc::Status status = Create(daemon, world);
    CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  CHECK(absl::StrContains(refusal(WorldOf(5, 0)), "5 hosts divide batches of 4 rows"));
  CHECK(
      absl::StrContains(refusal(WorldOf(3, 3)), "of 3 hosts the numbers are 0 to 2, found host 3"));
  CHECK(absl::StrContains(refusal(WorldOf(0, 0)), "expected 1 to 65536 hosts, found 0"));
  CHECK(absl::StrContains(refusal(WorldOf(4, 0, 5)),
                          "world.fewest_hosts: expected at most the number of hosts, 4, found 5"));
}

TEST_CASE(
    "from a named step on other hosts divide the batches, and nobody who reads them notices more") {
  TestDaemon daemon;
  REQUIRE(Create(daemon, WorldOf(4, 1, 1)).ok());
  std::unique_ptr<ring::Reader> reader;
  REQUIRE(daemon.Attach("counter", &reader).ok());
  CHECK(Next(*reader) == RowsOf(0, 1, 1));
  v1::UpdatePipelineResponse updated;
  REQUIRE(Update(daemon, Divide(WorldOf(2, 1), 200), &updated).ok());
  CHECK(updated.change().step() == 200);
  CHECK(IsWorld(updated.change().world(), 2, 1));
  // Another process of the host asks for the same.
  const std::string etag = updated.etag();
  REQUIRE(Update(daemon, Divide(WorldOf(2, 1), 200), &updated).ok());
  CHECK(updated.etag() == etag);
  REQUIRE(Update(daemon, Divide(WorldOf(1, 0), 300)).ok());
  REQUIRE(Update(daemon, Divide(WorldOf(3, 2), 301)).ok());
  CHECK(Get(daemon).history_size() == 3);
  CHECK(IsWorld(Get(daemon).world(), 3, 2));
  for (int64_t step = 1; step < 200; ++step) REQUIRE(Next(*reader) == RowsOf(step, 1, 1));
  for (int64_t step = 200; step < 300; ++step) REQUIRE(Next(*reader) == RowsOf(step, 2, 2));
  CHECK(Next(*reader) == RowsOf(300, 0, 4));
  CHECK(Next(*reader) == RowsOf(301, 2, 2));
}

TEST_CASE(
    "a change of hosts is refused where they could not all be given it, or the ring has no room") {
  TestDaemon daemon;
  REQUIRE(Create(daemon, WorldOf(2, 1)).ok());
  const auto refusal = [&](const v1::UpdatePipelineRequest& request, grpc::StatusCode code) {
    const grpc::Status status = Update(daemon, request);
    CHECK(status.error_code() == code);
    return status.error_message();
  };
  v1::UpdatePipelineRequest request = Divide(WorldOf(3, 1), 0);
  request.clear_step();
  CHECK(absl::StrContains(refusal(request, grpc::StatusCode::INVALID_ARGUMENT),
                          "name it (--at-step N)"));
  request = Divide(WorldOf(3, 1), 200);
  request.mutable_update_mask()->add_paths("workers");
  CHECK(absl::StrContains(refusal(request, grpc::StatusCode::INVALID_ARGUMENT),
                          "nothing but the name, the step and the etag goes with it"));
  CHECK(absl::StrContains(refusal(Divide(WorldOf(5, 1), 200), grpc::StatusCode::INVALID_ARGUMENT),
                          "5 hosts divide batches of 4 rows"));
  CHECK(
      absl::StrContains(refusal(Divide(WorldOf(1, 0), 200), grpc::StatusCode::FAILED_PRECONDITION),
                        "may have 4, and a slot of its ring has room for 2"));
  std::unique_ptr<ring::Reader> reader;
  REQUIRE(daemon.Attach("counter", &reader).ok());
  CHECK(Next(*reader) == RowsOf(0, 2, 2));
  CHECK(absl::StrContains(refusal(Divide(WorldOf(3, 1), 0), grpc::StatusCode::FAILED_PRECONDITION),
                          "the earliest is"));
  CHECK(Update(daemon, Divide(WorldOf(3, 1), 200)).ok());
  // What one host takes back another may have begun.
  request.Clear();
  request.set_name("counter");
  request.set_withdraw(true);
  CHECK(absl::StrContains(refusal(request, grpc::StatusCode::FAILED_PRECONDITION), "withdraws"));
  request.Clear();
  request.set_name("counter");
  request.set_skip_steps(3);
  CHECK(absl::StrContains(refusal(request, grpc::StatusCode::FAILED_PRECONDITION),
                          "for all hosts alike; name it"));
  // Which epoch is the next one each host would say for itself.
  request.Clear();
  request.set_name("counter");
  request.set_at_next_epoch(true);
  CHECK(absl::StrContains(refusal(request, grpc::StatusCode::FAILED_PRECONDITION),
                          "which epoch is the next one is told by how far a host is"));
}

TEST_CASE("a host that is alone for a while changes its batches as one of several") {
  TestDaemon daemon;
  REQUIRE(Create(daemon, WorldOf(1, 0, 1)).ok());
  REQUIRE(Update(daemon, Divide(WorldOf(2, 0), 200)).ok());
  REQUIRE(Update(daemon, Divide(WorldOf(1, 0), 300)).ok());
  v1::UpdatePipelineRequest request;
  request.set_name("counter");
  request.set_skip_steps(3);
  const grpc::Status refused = Update(daemon, request);
  CHECK(refused.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK(absl::StrContains(refused.error_message(), "for all hosts alike; name it"));
  request.set_step(400);
  CHECK(Update(daemon, request).ok());
}

TEST_CASE("whole batches are divided anew by another pipeline only") {
  TestDaemon daemon;
  v1::CreatePipelineRequest request;
  request.mutable_source()->mutable_text()->set_text(
      "name: 'counter' stage { range { stop: 4000 } } stage { batch { batch_size: 6 "
      "drop_remainder: true } } stage { shuffle { buffer_size: 3 seed: 1 } }");
  *request.mutable_world() = WorldOf(2, 0);
  {
    v1::CreatePipelineResponse response;
    grpc::ClientContext context;
    REQUIRE(daemon.Stub()->CreatePipeline(&context, request, &response).ok());
  }
  const grpc::Status status = Update(daemon, Divide(WorldOf(3, 0), 200));
  CHECK(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK(absl::StrContains(status.error_message(), "create another pipeline from its cursor"));
}

TEST_CASE(
    "a pipeline that comes back is divided as it was, and its ring has the room that it had") {
  test::ScratchFolder folder;
  test::WriteShard(folder / "n.tfrecord", 0, 40);
  const v1::PipelineSpec spec =
      test::CountingSpec(folder / "n.tfrecord", "counter", "stage { repeat {} }");
  v1::WorkerDefaults defaults;
  defaults.set_workers(1);
  PipelineJournal journal(*StateFolder::Open(folder / "state"));
  const auto divided = [](uint32_t hosts, uint32_t host, uint64_t step) {
    RequestedChange requested;
    requested.step = step;
    *requested.change.mutable_world() = WorldOf(hosts, host);
    return requested;
  };
  {
    PipelineTable table(LocalFileSystem(), defaults, &journal);
    PipelineOptions options;
    options.world = {4, 3};
    options.fewest_hosts = 2;
    const auto pipeline = table.Create(spec, std::move(options));
    REQUIRE(pipeline.ok());
    REQUIRE((*pipeline)->Update(divided(2, 0, 200)).ok());
  }
  PipelineTable table(LocalFileSystem(), defaults, &journal);
  REQUIRE(table.ExpectKept().size() == 1);
  const auto pipeline = table.BringBack("counter");
  REQUIRE(pipeline.ok());
  CHECK(IsWorld((*pipeline)->Stats().world(), 2, 0));
  const v1::Pipeline told = (*pipeline)->Describe();
  CHECK(IsWorld(told.world(), 2, 0));
  REQUIRE(told.history_size() == 1);
  CHECK(told.history(0).step() == 200);
  CHECK(IsWorld(told.history(0).world(), 2, 0));
  CHECK(absl::StrContains((*pipeline)->Update(divided(1, 0, 1000)).status().message(),
                          "a slot of its ring has room for 2"));
}

}  // namespace
}  // namespace penstock
