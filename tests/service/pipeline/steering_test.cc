// Errors with their details, names that are not told, pages, ids of requests, and what a mask may
// say.

#include <map>
#include <string>

#include "base/file.h"
#include "penstock/v1/error_details.pb.h"
#include "server/service/control/pipeline_service.h"
#include "server/service/pipeline/pipeline_table.h"
#include "server/service/watch/error_details.h"
#include "tests/service/test_daemon.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

using test::TestDaemon;

struct Details {
  v1::ErrorInfo info;
  v1::BadRequest request;
};

Details DetailsOf(const grpc::Status& status) {
  v1::ErrorStatus all;
  REQUIRE(all.ParseFromString(status.error_details()));
  CHECK(all.code() == status.error_code());
  CHECK(all.message() == status.error_message());
  Details details;
  for (const google::protobuf::Any& detail : all.details()) {
    if (detail.type_url() == "type.googleapis.com/google.rpc.ErrorInfo")
      REQUIRE(details.info.ParseFromString(detail.value()));
    if (detail.type_url() == "type.googleapis.com/google.rpc.BadRequest")
      REQUIRE(details.request.ParseFromString(detail.value()));
  }
  CHECK(details.info.domain() == "penstock");
  return details;
}

std::string FieldOf(const Details& details) {
  return details.request.field_violations_size() == 1 ? details.request.field_violations(0).field()
                                                      : "";
}

template <typename Request, typename Response>
grpc::Status Call(const TestDaemon& daemon,
                  grpc::Status (v1::PipelineService::Stub::*method)(grpc::ClientContext*,
                                                                    const Request&, Response*),
                  const Request& request, Response* response) {
  grpc::ClientContext context;
  return (daemon.Stub().get()->*method)(&context, request, response);
}

using Stub = v1::PipelineService::Stub;

TEST_CASE("errors carry a reason, the pipeline and the field") {
  TestDaemon daemon;
  REQUIRE(daemon.CreateCounter("counter", 40).ok());
  {
    v1::GetPipelineRequest request;
    v1::GetPipelineResponse response;
    request.set_name("counte");
    const grpc::Status status = Call(daemon, &Stub::GetPipeline, request, &response);
    CHECK(status.error_code() == grpc::StatusCode::NOT_FOUND);
    const Details details = DetailsOf(status);
    CHECK(details.info.reason() == "PIPELINE_NOT_FOUND");
    CHECK(details.info.metadata().at("pipeline") == "counte");
  }
  CHECK(DetailsOf(daemon.CreateCounter("counter", 40)).info.reason() == "PIPELINE_EXISTS");
  {
    const Details details =
        DetailsOf(daemon.CreateCounter("other", 4, " stage { batch { batch_size: 0 } }"));
    CHECK(details.info.reason() == "INVALID_ARGUMENT");
    CHECK(FieldOf(details) == "source.spec.stage[batch_2]");
  }
  struct Case {
    std::string path;
    std::string etag;
    std::string reason;
    std::string field;
  };
  for (const Case& one : {Case{"stages", "", "INVALID_ARGUMENT", "update_mask.paths[0]"},
                          Case{"workers", "7-0", "ETAG_MISMATCH", ""},
                          Case{"stage", "", "FAILED_PRECONDITION", "spec.stage"}}) {
    v1::UpdatePipelineRequest request;
    v1::UpdatePipelineResponse response;
    request.set_name("counter");
    request.mutable_update_mask()->add_paths(one.path);
    request.mutable_spec()->set_workers(1);
    request.set_etag(one.etag);
    INFO(one.path);
    const Details details = DetailsOf(Call(daemon, &Stub::UpdatePipeline, request, &response));
    CHECK(details.info.reason() == one.reason);
    CHECK(FieldOf(details) == one.field);
  }
}

TEST_CASE("an error's details are told to a client whose message is cut") {
  TestDaemon daemon;
  v1::GetPipelineRequest request;
  v1::GetPipelineResponse response;
  request.set_name(std::string(100'000, 'x'));
  const grpc::Status status = Call(daemon, &Stub::GetPipeline, request, &response);
  CHECK(status.error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK(DetailsOf(status).info.metadata().at("pipeline").size() == 128);
}

TEST_CASE("details are cut between characters") {
  // Each of two bytes, and the cuts are at even numbers of bytes.
  std::string text = "x";
  for (int i = 0; i < 1000; ++i) text += "\u00e4";
  const Details details =
      DetailsOf(ToGrpc(WithField(absl::InvalidArgumentError(text), "spec"), text));
  CHECK(details.info.metadata().at("pipeline") == text.substr(0, 127));
  REQUIRE(details.request.field_violations_size() == 1);
  CHECK(details.request.field_violations(0).description() == text.substr(0, 399));
}

TEST_CASE("the pipelines come in pages") {
  TestDaemon daemon;
  for (const char* name : {"b", "a", "d", "c", "e"}) REQUIRE(daemon.CreateCounter(name, 4).ok());
  std::string names;
  v1::ListPipelinesRequest request;
  request.set_page_size(2);
  int pages = 0;
  do {
    v1::ListPipelinesResponse response;
    REQUIRE(Call(daemon, &Stub::ListPipelines, request, &response).ok());
    CHECK(response.pipelines_size() <= 2);
    for (const v1::Pipeline& pipeline : response.pipelines()) names += pipeline.name();
    request.set_page_token(response.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  CHECK(names == "abcde");
  CHECK(pages == 3);
  request.set_page_size(-1);
  v1::ListPipelinesResponse response;
  CHECK(FieldOf(DetailsOf(Call(daemon, &Stub::ListPipelines, request, &response))) == "page_size");
}

TEST_CASE("a creation that is asked for again by its id gets what the first one made") {
  TestDaemon daemon;
  test::WriteShard(daemon.folder() / "counter.tfrecord", 0, 8);
  const auto create = [&](const std::string& id) {
    v1::CreatePipelineRequest request;
    request.mutable_source()->mutable_text()->set_text(TestDaemon::CounterSpec("counter"));
    request.mutable_source()->set_base_directory(daemon.folder().path());
    request.set_request_id(id);
    v1::CreatePipelineResponse response;
    return Call(daemon, &Stub::CreatePipeline, request, &response);
  };
  CHECK(FieldOf(DetailsOf(create(std::string(65, 'x')))) == "request_id");
  CHECK(create("one").ok());
  CHECK(create("one").ok());
  CHECK(create("two").error_code() == grpc::StatusCode::ALREADY_EXISTS);
  CHECK(create("").error_code() == grpc::StatusCode::ALREADY_EXISTS);
  v1::DeletePipelineRequest request;
  v1::DeletePipelineResponse response;
  request.set_name("counter");
  REQUIRE(Call(daemon, &Stub::DeletePipeline, request, &response).ok());
  // Another one of the same name is not what the first request made.
  CHECK(create("two").ok());
  CHECK(create("one").error_code() == grpc::StatusCode::ALREADY_EXISTS);
}

TEST_CASE("what is not found names those alone that may be seen") {
  FileSystem& files = LocalFileSystem();
  PipelineTable table(files, {});
  for (const char* name : {"open", "secret"}) {
    v1::PipelineSpec spec;
    spec.set_name(name);
    spec.add_stage()->mutable_range()->set_stop(4);
    REQUIRE(table.Create(spec).ok());
  }
  const auto visible = [](const std::string& name) { return name == "open"; };
  CHECK(table.Find("secre", visible).status().message() == "no pipeline \"secre\"; there are open");
  CHECK(table.Delete("nothing", visible).message() == "no pipeline \"nothing\"; there are open");
  CHECK(table.Find("x", [](const std::string&) { return false; }).status().message() ==
        "no pipeline \"x\"; there are none: start one with penstock create SPEC");
}

}  // namespace
}  // namespace penstock
