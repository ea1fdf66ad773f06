// The gRPC services beside ours, called by their wire form: their generated code is not installed
// with the library.

#include "server/service/control/control_server.h"

#include <grpcpp/generic/generic_stub.h>

#include <string>

#include "server/service/control/pipeline_service.h"
#include "tests/service/test_daemon.h"

namespace penstock {
namespace {

using test::TestDaemon;

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// Sends one message and returns the first that comes back; "" with no answer.
std::string Exchange(const TestDaemon& daemon, const std::string& method,
                     const std::string& message) {
  grpc::GenericStub stub(daemon.Channel());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  grpc::CompletionQueue queue;
  auto call = stub.PrepareCall(&context, method, &queue);
  const auto wait = [&queue] {
    void* tag;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  call->StartCall(nullptr);
  if (!wait()) return "";
  call->Write(ToBuffer(message), nullptr);
  if (!wait()) return "";
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  if (!wait()) return "";
  return ToString(answer);
}

TEST_CASE("the health service says SERVING") {
  TestDaemon daemon;
  // HealthCheckRequest {}; HealthCheckResponse { status: SERVING = 1 }.
  CHECK(Exchange(daemon, "/grpc.health.v1.Health/Check", "") == std::string("\x08\x01"));
}

TEST_CASE("reflection lists the services") {
  TestDaemon daemon;
  // ServerReflectionRequest { list_services: "" }.
  const std::string answer =
      Exchange(daemon, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
               std::string("\x3a\x00", 2));
  CHECK(answer.find("penstock.v1.PipelineService") != std::string::npos);
  CHECK(answer.find("grpc.health.v1.Health") != std::string::npos);
}

TEST_CASE("create, get, validate, stats and delete over gRPC") {
  TestDaemon daemon;
  REQUIRE(daemon.CreateCounter("counter", 8).ok());
  CHECK(daemon.CreateCounter("counter", 8).error_code() == grpc::StatusCode::ALREADY_EXISTS);
  const auto stub = daemon.Stub();
  {
    grpc::ClientContext context;
    v1::GetPipelineRequest request;
    v1::GetPipelineResponse response;
    request.set_name("counter");
    REQUIRE(stub->GetPipeline(&context, request, &response).ok());
    CHECK(response.pipeline().spec().stage(0).tfrecord().files(0) ==
          daemon.folder() / "counter.tfrecord");
    CHECK_FALSE(response.pipeline().endless());
  }
  {
    grpc::ClientContext context;
    v1::ValidatePipelineRequest request;
    v1::ValidatePipelineResponse response;
    request.mutable_source()->mutable_text()->set_text(TestDaemon::CounterSpec("counter"));
    request.mutable_source()->set_base_directory(daemon.folder().path());
    REQUIRE(stub->ValidatePipeline(&context, request, &response).ok());
    CHECK(response.pipeline().state() == v1::PIPELINE_STATE_UNSPECIFIED);
    CHECK(!response.explanation().empty());
  }
  std::unique_ptr<ring::Reader> reader;
  REQUIRE(daemon.Attach("counter", &reader).ok());
  ring::Lease lease;
  REQUIRE(reader->Next(UINT64_MAX, &lease) == ring::Reader::Result::kBatch);
  REQUIRE(reader->Next(UINT64_MAX, &lease) == ring::Reader::Result::kBatch);
  {
    grpc::ClientContext context;
    v1::GetStatsRequest request;
    v1::GetStatsResponse response;
    request.set_name("counter");
    REQUIRE(stub->GetStats(&context, request, &response).ok());
    CHECK(response.stats().steps() == 2);
    CHECK(response.stats().rows() == 8);
    CHECK(response.stats().records() == 8);
    CHECK(response.stats().workers() == 1);
    REQUIRE(response.stats().consumers_size() == 1);
    CHECK(response.stats().consumers(0).pid() == getpid());
    CHECK(response.stats().consumers(0).group() == "default");
    CHECK(response.stats().consumers(0).leases() == 2);
    CHECK(response.stats().stages_size() == 3);
  }
  {
    grpc::ClientContext context, again_context;
    v1::DeletePipelineRequest request;
    v1::DeletePipelineResponse response;
    request.set_name("counter");
    CHECK(stub->DeletePipeline(&context, request, &response).ok());
    CHECK(stub->DeletePipeline(&again_context, request, &response).error_code() ==
          grpc::StatusCode::NOT_FOUND);
  }
}

TEST_CASE("fault 57: a message beyond the limit is cut") {
  const grpc::Status status = ToGrpc(absl::InvalidArgumentError(std::string(10000, 'x')));
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(status.error_message().size() < 2100);
}

}  // namespace
}  // namespace penstock
