// `penstock list`: the daemon's pipelines, a line each.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "client/ctl/arguments/world_argument.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/daemon/daemon_connection.h"
#include "client/ctl/words/describe.h"
#include "client/ctl/words/json_line.h"
#include "client/ctl/words/user_name.h"

namespace penstock::ctl {
namespace {

absl::Status List(const std::string& socket, bool json) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  const auto answer = daemon->List();
  if (!answer.ok()) return answer.status();
  if (json) {
    absl::Status status;
    for (const v1::Pipeline& pipeline : answer->pipelines()) status.Update(PrintJson(pipeline));
    return status;
  }
  int width = 4;
  int owner_width = 5;
  std::vector<std::string> owners;
  for (const v1::Pipeline& pipeline : answer->pipelines()) {
    width = std::max(width, static_cast<int>(pipeline.name().size()));
    owners.push_back(pipeline.has_owner_uid() ? UserName(pipeline.owner_uid()) : "-");
    owner_width = std::max(owner_width, static_cast<int>(owners.back().size()));
  }
  bool has_worlds = false;
  for (const v1::Pipeline& pipeline : answer->pipelines()) has_worlds |= pipeline.has_world();
  // Of the longest: "host 65535 of 65536", and two spaces.
  const int world_width = has_worlds ? 21 : 0;
  std::printf("%-*s  %-9s  %-*s  %7s  %5s  %10s  %-*s%s\n", width, "NAME", "STATE", owner_width,
              "OWNER", "WORKERS", "SLOTS", "BATCH", world_width, has_worlds ? "WORLD" : "",
              "ERROR");
  for (int i = 0; i < answer->pipelines_size(); ++i) {
    const v1::Pipeline& pipeline = answer->pipelines(i);
    const std::string world = pipeline.has_world() ? DescribeWorld(pipeline.world()) : "";
    std::printf("%-*s  %-9s  %-*s  %7u  %5u  %10s  %-*s%s\n", width, pipeline.name().c_str(),
                StateName(pipeline.state()).c_str(), owner_width,
                owners[static_cast<size_t>(i)].c_str(), pipeline.workers(), pipeline.slots(),
                ByteCount(pipeline.slot_bytes()).c_str(), world_width, world.c_str(),
                pipeline.error().message().c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddList(Command root, const std::string& socket) {
  Command command = root.AddCommand("list", "The daemon's pipelines");
  auto json = std::make_shared<bool>(false);
  command.AddFlag("--json", json.get(), "A Pipeline (control.proto) as JSON a line");
  command.Runs([&socket, json] { return Report("list", List(socket, *json)); });
}

}  // namespace penstock::ctl
