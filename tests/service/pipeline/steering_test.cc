// Errors with their details, names that are not told, pages, ids of requests, and what a mask may
// say.

#include <map>
#include <memory>
#include <string>
#include <vector>

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

TEST_CASE("what a call may not say is refused with its field") {
  TestDaemon daemon;
  REQUIRE(daemon.CreateCounter("counter", 40, " stage { repeat {} }").ok());
  const auto check = [](const grpc::Status& status, const std::string& reason,
                        const std::string& field) {
    INFO(status.error_message());
    REQUIRE_FALSE(status.ok());
    const Details details = DetailsOf(status);
    CHECK(details.info.reason() == reason);
    CHECK(FieldOf(details) == field);
  };
  v1::UpdatePipelineResponse updated;
  {
    v1::UpdatePipelineRequest request;
    request.set_name("counter");
    request.set_skip_steps(1);
    request.set_step(1000);
    REQUIRE(Call(daemon, &Stub::UpdatePipeline, request, &updated).ok());
    request.set_withdraw(true);
    check(Call(daemon, &Stub::UpdatePipeline, request, &updated), "INVALID_ARGUMENT", "withdraw");
    request.set_withdraw(false);
    request.set_step((uint64_t{1} << 62) + 1);
    check(Call(daemon, &Stub::UpdatePipeline, request, &updated), "INVALID_ARGUMENT", "step");
    request.set_step(999);
    check(Call(daemon, &Stub::UpdatePipeline, request, &updated), "CANNOT_CHANGE", "");
  }
  {
    v1::SeekPipelineRequest request;
    v1::SeekPipelineResponse response;
    request.set_name("counter");
    request.set_etag("0-00000000");
    check(Call(daemon, &Stub::SeekPipeline, request, &response), "ETAG_MISMATCH", "cursor");
    request.set_etag(updated.etag());
    request.set_step(uint64_t{1} << 63);
    check(Call(daemon, &Stub::SeekPipeline, request, &response), "INVALID_ARGUMENT", "step");
  }
  {
    v1::UpdateGroupRequest request;
    v1::UpdateGroupResponse response;
    request.set_name("counter");
    request.set_group(std::string(65, 'g'));
    request.set_slow(v1::SLOW_POLICY_SKIP);
    check(Call(daemon, &Stub::UpdateGroup, request, &response), "INVALID_ARGUMENT", "group");
    request.set_group("g");
    request.set_slow(v1::SLOW_POLICY_UNSPECIFIED);
    check(Call(daemon, &Stub::UpdateGroup, request, &response), "INVALID_ARGUMENT", "slow");
  }
  {
    v1::DropGroupRequest request;
    v1::DropGroupResponse response;
    request.set_name("counter");
    request.set_group("g");
    check(Call(daemon, &Stub::DropGroup, request, &response), "GROUP_NOT_FOUND", "group");
  }
  {
    v1::DetachConsumerRequest request;
    v1::DetachConsumerResponse response;
    request.set_name("counter");
    request.set_id(99);
    check(Call(daemon, &Stub::DetachConsumer, request, &response), "CONSUMER_NOT_FOUND", "id");
  }
  {
    v1::DrainPipelineRequest request;
    v1::DrainPipelineResponse response;
    request.set_name("counter");
    for (const int timeout_ms : {-1, 600'001}) {
      request.set_timeout_ms(timeout_ms);
      check(Call(daemon, &Stub::DrainPipeline, request, &response), "INVALID_ARGUMENT",
            "timeout_ms");
    }
  }
  {
    v1::ProfilePipelineRequest request;
    v1::ProfilePipelineResponse response;
    request.set_name("counter");
    request.set_duration_ms(60'001);
    check(Call(daemon, &Stub::ProfilePipeline, request, &response), "INVALID_ARGUMENT",
          "duration_ms");
  }
  {
    v1::SamplePipelineRequest request;
    v1::SamplePipelineResponse response;
    request.set_name("counter");
    for (const int rows : {-1, 65}) {
      request.set_sheet_rows(rows);
      check(Call(daemon, &Stub::SamplePipeline, request, &response), "INVALID_ARGUMENT",
            "sheet_rows");
    }
  }
  {
    v1::SetLogLevelRequest request;
    v1::SetLogLevelResponse response;
    check(Call(daemon, &Stub::SetLogLevel, request, &response), "INVALID_ARGUMENT", "level");
  }
}

TEST_CASE("consumers are listed by their group, and a group without a lag gets the usual one") {
  TestDaemon daemon;
  REQUIRE(daemon.CreateCounter("counter", 40, " stage { repeat {} }").ok());
  std::vector<std::unique_ptr<ring::Reader>> readers(2);
  const std::string groups[] = {"a", "b"};
  for (int i = 0; i < 2; ++i) {
    ring::Attachment attachment;
    REQUIRE(ring::Attach(daemon.socket(), "counter", groups[i], 60'000'000'000, &attachment).ok());
    REQUIRE(ring::Reader::Open(attachment, &readers[i]).ok());
  }
  v1::ListConsumersRequest list;
  v1::ListConsumersResponse listed;
  list.set_name("counter");
  REQUIRE(Call(daemon, &Stub::ListConsumers, list, &listed).ok());
  CHECK(listed.consumers_size() == 2);
  list.set_group("b");
  REQUIRE(Call(daemon, &Stub::ListConsumers, list, &listed).ok());
  REQUIRE(listed.consumers_size() == 1);
  CHECK(listed.consumers(0).group() == "b");

  v1::UpdateGroupRequest update;
  v1::UpdateGroupResponse updated;
  update.set_name("counter");
  update.set_group("a");
  update.set_slow(v1::SLOW_POLICY_BLOCK);
  REQUIRE(Call(daemon, &Stub::UpdateGroup, update, &updated).ok());
  v1::ListGroupsRequest list_groups;
  v1::ListGroupsResponse listed_groups;
  list_groups.set_name("counter");
  REQUIRE(Call(daemon, &Stub::ListGroups, list_groups, &listed_groups).ok());
  REQUIRE(listed_groups.groups_size() == 2);
  CHECK(listed_groups.groups(0).name() == "a");
  CHECK(listed_groups.groups(0).lag_ms() == 60'000);
}

// Changes the stages of `counter` to what they are.
v1::UpdatePipelineRequest UpdateOfStages(TestDaemon& daemon) {
  v1::GetPipelineRequest get;
  v1::GetPipelineResponse got;
  get.set_name("counter");
  REQUIRE(Call(daemon, &Stub::GetPipeline, get, &got).ok());
  v1::UpdatePipelineRequest request;
  request.set_name("counter");
  request.mutable_update_mask()->add_paths("stage");
  *request.mutable_spec()->mutable_stage() = got.pipeline().spec().stage();
  return request;
}

TEST_CASE("stages of an update keep the names of those that they replace") {
  TestDaemon daemon;
  REQUIRE(daemon.CreateCounter("counter", 40, " stage { name: 'again' repeat {} }").ok());
  v1::UpdatePipelineRequest request = UpdateOfStages(daemon);
  v1::UpdatePipelineResponse response;
  const std::string name = request.spec().stage(2).name();
  for (v1::Stage& stage : *request.mutable_spec()->mutable_stage()) stage.clear_name();
  request.mutable_spec()->mutable_stage(2)->mutable_batch()->set_batch_size(2);
  const grpc::Status status = Call(daemon, &Stub::UpdatePipeline, request, &response);
  INFO(status.error_message());
  REQUIRE(status.ok());
  REQUIRE(response.change().stage_size() == 1);
  CHECK(response.change().stage(0).name() == name);
  CHECK(response.change().stage(0).batch().batch_size() == 2);
}

TEST_CASE("the owner of a pipeline may have it call other functions, as far as its stages go") {
  TestDaemon daemon;
  REQUIRE(daemon.CreateCounter("counter", 40, " stage { repeat {} }").ok());
  v1::UpdatePipelineRequest request = UpdateOfStages(daemon);
  v1::UpdatePipelineResponse response;
  request.mutable_spec()->mutable_stage(1)->mutable_python()->mutable_function()->set_file("/f");
  const grpc::Status status = Call(daemon, &Stub::UpdatePipeline, request, &response);
  INFO(status.error_message());
  CHECK_FALSE(status.ok());
  CHECK(status.error_code() != grpc::StatusCode::PERMISSION_DENIED);
}

TEST_CASE("inputs of a stage keep all but what may change") {
  TestDaemon daemon;
  v1::CreatePipelineRequest create;
  create.mutable_source()->mutable_text()->set_text(
      "name: 'mixed' stage { sample_from_datasets { seed: 1"
      " input { stage { range { stop: 100 } } } input { stage { range { stop: 200 } } } } }"
      " stage { batch { batch_size: 4 } } stage { repeat {} }");
  v1::CreatePipelineResponse created;
  {
    const grpc::Status status = Call(daemon, &Stub::CreatePipeline, create, &created);
    INFO(status.error_message());
    REQUIRE(status.ok());
  }
  v1::GetPipelineRequest get;
  v1::GetPipelineResponse got;
  get.set_name("mixed");
  REQUIRE(Call(daemon, &Stub::GetPipeline, get, &got).ok());
  v1::UpdatePipelineRequest request;
  v1::UpdatePipelineResponse response;
  request.set_name("mixed");
  request.mutable_update_mask()->add_paths("stage");
  *request.mutable_spec()->mutable_stage() = got.pipeline().spec().stage();
  v1::SampleFromDatasets& mixture =
      *request.mutable_spec()->mutable_stage(0)->mutable_sample_from_datasets();
  mixture.add_weight(0.25);
  mixture.add_weight(0.75);
  mixture.mutable_input(1)->mutable_stage(0)->mutable_range()->set_stop(300);
  const grpc::Status status = Call(daemon, &Stub::UpdatePipeline, request, &response);
  INFO(status.error_message());
  CHECK(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK(FieldOf(DetailsOf(status)) == "spec.stage[0]");
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
