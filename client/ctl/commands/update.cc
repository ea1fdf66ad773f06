// `penstock update`: changes a pipeline while it runs.

#include <google/protobuf/text_format.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/arguments/first_error.h"
#include "client/ctl/arguments/spec_arguments.h"
#include "client/ctl/arguments/world_argument.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/daemon/daemon_connection.h"

namespace penstock::ctl {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

struct UpdateArguments {
  std::string name;
  std::optional<uint64_t> workers;
  std::optional<uint64_t> slots;
  std::optional<uint64_t> read_ahead;
  std::optional<uint64_t> memory;
  // Of another spec: its file, and the files of its sources.
  SpecArguments source;
  bool at_next_epoch = false;
  std::vector<std::string> values;
  uint64_t skip = 0;
  std::optional<uint64_t> step;
  std::string etag;
  bool withdraw = false;
  WorldArgument world;
};

// From where on a change holds (Change in steering.proto).
std::string FromWhere(const v1::Change& change) {
  if (!change.has_epoch() || (change.step() > 0 && change.epoch() > 0))
    return absl::StrCat("step ", change.step());
  if (change.step() > 0) return absl::StrCat("the first epoch behind step ", change.step() - 1);
  return absl::StrCat("epoch ", change.epoch());
}

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

// The field alone, with a value as it stands in a spec, or of several with commas between them; a
// string may stand without quotes.
absl::Status ParseValue(const std::string& value, const FieldDescriptor* field, Message* parsed) {
  const bool is_bare = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING &&
                       !absl::StartsWith(value, "\"") && !absl::StartsWith(value, "'");
  const std::string written = is_bare ? absl::StrCat("\"", absl::CEscape(value), "\"") : value;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  const std::string text = field->is_repeated() ? absl::StrCat(field->name(), ": [", written, "]")
                                                : absl::StrCat(field->name(), ": ", written);
  if (!parser.ParseFromString(text, parsed)) return absl::InvalidArgumentError(error.text);
  std::vector<const FieldDescriptor*> fields;
  parsed->GetReflection()->ListFields(*parsed, &fields);
  for (const FieldDescriptor* one : fields) {
    if (one != field)
      return absl::InvalidArgumentError(absl::StrCat("it sets ", one->name(), " too"));
  }
  return absl::OkStatus();
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
  const std::unique_ptr<Message> parsed(options->New());
  if (absl::Status status = ParseValue(value, field, parsed.get()); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a value of ", path, ": ", value, " (", status.message(), ")"));
  }
  options->GetReflection()->ClearField(options, field);
  options->MergeFrom(*parsed);
  request->mutable_update_mask()->add_paths("stage");
  return absl::OkStatus();
}

std::string CheckValue(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals != text.npos && equals > 0 && equals + 1 < text.size()) return "";
  return "expected [STAGE.]NAME=VALUE, found " + text;
}

// Those of the arguments that make another spec, or change that of the pipeline.
absl::Status ReadStages(DaemonConnection& daemon, const UpdateArguments& arguments,
                        v1::UpdatePipelineRequest* request) {
  if (!arguments.source.path.empty()) {
    if (!arguments.values.empty())
      return absl::InvalidArgumentError("--set goes with the pipeline's own spec, not with --spec");
    absl::StatusOr<v1::SpecSource> source = arguments.source.Read();
    if (!source.ok()) return source.status();
    *request->mutable_source() = *std::move(source);
    return absl::OkStatus();
  }
  if (arguments.values.empty() && arguments.source.files.empty()) return absl::OkStatus();
  auto pipeline = daemon.Get(arguments.name);
  if (!pipeline.ok()) return pipeline.status();
  *request->mutable_spec() = pipeline->spec();
  if (request->etag().empty()) request->set_etag(pipeline->etag());
  for (const std::string& value : arguments.values) {
    if (absl::Status status = SetValue(value, request); !status.ok()) return status;
  }
  if (arguments.source.files.empty()) return absl::OkStatus();
  *request->mutable_source()->mutable_spec() = request->spec();
  return arguments.source.AddOverrides(request->mutable_source());
}

absl::Status Update(const std::string& socket, const UpdateArguments& arguments) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  v1::UpdatePipelineRequest request;
  request.set_name(arguments.name);
  request.set_etag(arguments.etag);
  request.set_skip_steps(arguments.skip);
  if (arguments.step) request.set_step(*arguments.step);
  if (absl::Status status = ReadStages(*daemon, arguments, &request); !status.ok()) return status;
  request.set_withdraw(arguments.withdraw);
  arguments.world.AddTo(&request);
  request.set_at_next_epoch(arguments.at_next_epoch || (request.has_source() && !arguments.step));
  if (arguments.workers) {
    request.mutable_spec()->set_workers(static_cast<int32_t>(*arguments.workers));
    request.mutable_update_mask()->add_paths("workers");
  }
  if (arguments.slots) {
    request.mutable_spec()->mutable_ring()->set_slots(static_cast<int32_t>(*arguments.slots));
    request.mutable_update_mask()->add_paths("ring.slots");
  }
  if (arguments.read_ahead) {
    request.mutable_spec()->set_read_ahead_bytes(static_cast<int64_t>(*arguments.read_ahead));
    request.mutable_update_mask()->add_paths("read_ahead_bytes");
  }
  if (arguments.memory) request.set_memory_bytes(static_cast<int64_t>(*arguments.memory));
  const auto answer = daemon->Update(request);
  if (!answer.ok()) return answer.status();
  std::printf(arguments.withdraw ? "withdrawn: the change of %s from %s on (etag %s)\n"
                                 : "updated %s from %s on (etag %s)\n",
              arguments.name.c_str(), FromWhere(answer->change()).c_str(), answer->etag().c_str());
  if (!answer->notice().empty())
    std::fprintf(stderr, "penstock update: %s\n", answer->notice().c_str());
  return absl::OkStatus();
}

}  // namespace

void AddUpdate(Command root, const std::string& socket) {
  Command command = root.AddCommand(
      "update", "Change a pipeline while it runs; no batch is lost or doubled (history)");
  auto arguments = std::make_shared<UpdateArguments>();
  command.Add("NAME", &arguments->name, "The pipeline").Required();
  command.Add("--workers", &arguments->workers, "Worker threads; 0: the daemon chooses")
      .InRange(0, 1024);
  command.Add("--slots", &arguments->slots, "The ring's depth; 0: the daemon chooses")
      .InRange(0, 64);
  command.Add("--read-ahead", &arguments->read_ahead,
              "Bytes that sources read ahead, 65536 to 67108864; 0: the daemon chooses");
  command.Add("--memory", &arguments->memory,
              "Bytes that its rings may take; 0: what the daemon's configuration says");
  command
      .Add("--set", &arguments->values,
           "[STAGE.]NAME=VALUE: a constant of map, the weights (mix.weight=0.7,0.3) of "
           "sample_from_datasets, the batch_size of batch; with --next-epoch any option; may be "
           "repeated")
      .OneByOne()
      .Checked(CheckValue);
  command.Add("--spec", &arguments->source.path,
              "The stages of this file, from the next epoch on (or --at-step)");
  command
      .Add("--files", &arguments->source.files,
           "[STAGE=]GLOB: replaces a source's files from the next epoch on; may be repeated")
      .OneByOne();
  command.AddFlag("--next-epoch", &arguments->at_next_epoch,
                  "Make the change when the current epoch has ended");
  command.Add("--skip", &arguments->skip, "Steps to leave out").Positive();
  command.Add("--at-step", &arguments->step,
              "The first step with the change. Default: the earliest possible step");
  command.AddFlag("--withdraw", &arguments->withdraw,
                  "Take the last change back, if its first step is still to come");
  WorldArgument::Add(command, &arguments->world);
  command.Add("--etag", &arguments->etag, "Only if nobody has changed the pipeline meanwhile");
  command.Runs([&socket, arguments] { return Report("update", Update(socket, *arguments)); });
}

}  // namespace penstock::ctl
