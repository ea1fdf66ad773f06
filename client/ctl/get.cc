// `penstock get`: a pipeline's resolved spec, ready to be created again.

#include <google/protobuf/text_format.h>

#include <cstdio>
#include <memory>

#include "client/ctl/commands.h"
#include "client/ctl/daemon_connection.h"
#include "client/ctl/describe.h"
#include "client/ctl/json_line.h"
#include "client/ctl/user_name.h"
#include "client/ctl/world_argument.h"

namespace penstock::ctl {
namespace {

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
