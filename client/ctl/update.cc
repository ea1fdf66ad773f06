// `penstock update`: changes a pipeline while it runs.

#include <google/protobuf/text_format.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/ctl/commands.h"
#include "client/ctl/daemon_connection.h"

namespace penstock::ctl {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

struct UpdateArguments {
  std::string name;
  int workers = 0;
  int slots = 0;
  std::vector<std::string> values;
  uint64_t skip = 0;
  std::optional<uint64_t> step;
  std::string etag;
};

// The options of the stage's op; null when there is no such stage.
Message* OptionsOf(const std::string& stage, v1::PipelineSpec* spec) {
  for (v1::Stage& one : *spec->mutable_stage()) {
    if (one.name() != stage) continue;
    const auto* oneof = v1::Stage::descriptor()->FindOneofByName("op");
    const FieldDescriptor* op = one.GetReflection()->GetOneofFieldDescriptor(one, oneof);
    return op == nullptr ? nullptr : one.GetReflection()->MutableMessage(&one, op);
  }
  return nullptr;
}

// [STAGE.]NAME=VALUE: an option of the stage's op, or a constant.
absl::Status SetValue(const std::string& text, v1::UpdatePipelineRequest* request) {
  const size_t equals = text.find('=');
  const std::string path = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  const size_t dot = path.rfind('.');
  const std::string stage = dot == path.npos ? "" : path.substr(0, dot);
  const std::string name = dot == path.npos ? path : path.substr(dot + 1);
  Message* options = OptionsOf(stage, request->mutable_spec());
  const FieldDescriptor* field =
      options == nullptr ? nullptr : options->GetDescriptor()->FindFieldByName(name);
  if (field == nullptr || field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    v1::ConstantOverride* constant = request->add_constants();
    constant->set_stage(stage);
    constant->set_name(name);
    constant->set_value(value);
    return absl::OkStatus();
  }
  std::string fields;
  for (const auto& one : absl::StrSplit(value, ','))
    absl::StrAppend(&fields, name, ": ", one, "\n");
  options->GetReflection()->ClearField(options, field);
  if (!google::protobuf::TextFormat::MergeFromString(fields, options)) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a value of ", stage, ".", name, ": ", value));
  }
  request->mutable_update_mask()->add_paths("stage");
  return absl::OkStatus();
}

std::string CheckValue(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals != text.npos && equals > 0 && equals + 1 < text.size()) return "";
  return "expected [STAGE.]NAME=VALUE, found " + text;
}

absl::Status Update(const std::string& socket, const UpdateArguments& arguments) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  v1::UpdatePipelineRequest request;
  request.set_name(arguments.name);
  request.set_etag(arguments.etag);
  request.set_skip_steps(arguments.skip);
  if (arguments.step) request.set_step(*arguments.step);
  if (!arguments.values.empty()) {
    auto pipeline = daemon->Get(arguments.name);
    if (!pipeline.ok()) return pipeline.status();
    *request.mutable_spec() = pipeline->spec();
    if (request.etag().empty()) request.set_etag(pipeline->etag());
    for (const std::string& value : arguments.values) {
      if (absl::Status status = SetValue(value, &request); !status.ok()) return status;
    }
  }
  if (arguments.workers > 0) {
    request.mutable_spec()->set_workers(arguments.workers);
    request.mutable_update_mask()->add_paths("workers");
  }
  if (arguments.slots > 0) {
    request.mutable_spec()->mutable_ring()->set_slots(arguments.slots);
    request.mutable_update_mask()->add_paths("ring.slots");
  }
  const auto answer = daemon->Update(request);
  if (!answer.ok()) return answer.status();
  std::printf("updated %s from step %llu on (etag %s)\n", arguments.name.c_str(),
              static_cast<unsigned long long>(answer->change().step()), answer->etag().c_str());
  return absl::OkStatus();
}

}  // namespace

void AddUpdate(Command root, const std::string& socket) {
  Command command = root.AddCommand(
      "update", "Change a pipeline while it runs; no batch is lost or doubled (history)");
  auto arguments = std::make_shared<UpdateArguments>();
  command.Add("NAME", &arguments->name, "The pipeline").Required();
  command.Add("--workers", &arguments->workers, "Worker threads").InRange(1, 1024);
  command.Add("--slots", &arguments->slots, "The ring's depth").InRange(2, 64);
  command
      .Add("--set", &arguments->values,
           "[STAGE.]NAME=VALUE: a constant of map, the weights (mix.weight=0.7,0.3) of "
           "sample_from_datasets, the batch_size of batch; may be repeated")
      .OneByOne()
      .Checked(CheckValue);
  command.Add("--skip", &arguments->skip, "Steps to leave out").Positive();
  command.Add("--at-step", &arguments->step,
              "The first step that it holds for; without it the earliest possible");
  command.Add("--etag", &arguments->etag, "Only if nobody has changed the pipeline meanwhile");
  command.Runs([&socket, arguments] { return Report("update", Update(socket, *arguments)); });
}

}  // namespace penstock::ctl
