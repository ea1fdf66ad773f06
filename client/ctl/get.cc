// `penstock get`: a pipeline's resolved spec, ready to be created again.

#include <google/protobuf/text_format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "client/ctl/commands.h"
#include "client/ctl/daemon_connection.h"
#include "client/ctl/describe.h"
#include "client/ctl/json_line.h"
#include "client/ctl/user_name.h"
#include "client/ctl/world_argument.h"
#include "penstock/v1/ops.pb.h"

namespace penstock::ctl {
namespace {

// A line for each Python function, in whatever stage: its code's hash, by which two specs are
// compared.
void PrintCodes(const google::protobuf::Message& message) {
  if (message.GetDescriptor() == v1::PythonFunction::descriptor()) {
    const auto& function = static_cast<const v1::PythonFunction&>(message);
    std::printf("# code: %s of the Python function %s\n", function.code().c_str(),
                function.name().empty() ? "function" : function.name().c_str());
    return;
  }
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      PrintCodes(reflection.GetMessage(message, field));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i)
      PrintCodes(reflection.GetRepeatedMessage(message, field, i));
  }
}

absl::Status Get(const std::string& socket, const std::string& name, bool json) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  const auto pipeline = daemon->Get(name);
  if (!pipeline.ok()) return pipeline.status();
  if (json) return PrintJson(*pipeline);
  std::string spec;
  google::protobuf::TextFormat::PrintToString(pipeline->spec(), &spec);
  // All but the spec as comments, so that the output is a spec.
  std::printf("# state: %s\n", StateName(pipeline->state()).c_str());
  if (pipeline->has_owner_uid())
    std::printf("# owner: %s\n", UserName(pipeline->owner_uid()).c_str());
  if (pipeline->has_world()) {
    std::printf("# world: %s, of batches of %u rows\n", DescribeWorld(pipeline->world()).c_str(),
                pipeline->batch_rows());
  }
  if (pipeline->has_python_uid())
    std::printf("# Python: functions of user %u compute bytes of it\n", pipeline->python_uid());
  PrintCodes(pipeline->spec());
  for (const std::string& notice : pipeline->notice())
    std::printf("# notice: %s\n", notice.c_str());
  if (pipeline->has_error()) std::printf("# error: %s\n", pipeline->error().message().c_str());
  // What it takes now changes from look to look, and stands in `penstock stats`.
  if (const auto stats = daemon->Stats(name); stats.ok() && stats->max_work_bytes() > 0) {
    std::printf("# memory: computing and keeping may take %s\n",
                ByteCount(stats->max_work_bytes()).c_str());
  }
  std::string line = "# ";
  for (const char c : DescribeElement(*pipeline)) {
    line += c;
    if (c != '\n') continue;
    std::printf("%s", line.c_str());
    line = "# ";
  }
  std::printf("%s", spec.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddGet(Command root, const std::string& socket) {
  Command command = root.AddCommand(
      "get", "A pipeline's state and its spec with all that was derived, seeds included");
  auto name = std::make_shared<std::string>();
  command.Add("NAME", name.get(), "The pipeline").Required();
  auto json = std::make_shared<bool>(false);
  command.AddFlag("--json", json.get(), "A Pipeline (control.proto) as JSON");
  command.Runs([&socket, name, json] { return Report("get", Get(socket, *name, *json)); });
}

}  // namespace penstock::ctl
