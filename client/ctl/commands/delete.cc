// `penstock delete`: stops a pipeline.

#include <cstdio>
#include <memory>

#include "client/ctl/commands/commands.h"
#include "client/ctl/daemon/daemon_connection.h"

namespace penstock::ctl {
namespace {

absl::Status Delete(const std::string& socket, const std::string& name) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  absl::Status status = daemon->Delete(name);
  if (status.ok()) std::printf("deleted %s\n", name.c_str());
  return status;
}

}  // namespace

void AddDelete(Command root, const std::string& socket) {
  Command command = root.AddCommand("delete", "Stop a pipeline; its consumers get NOT_FOUND");
  auto name = std::make_shared<std::string>();
  command.Add("NAME", name.get(), "The pipeline").Required();
  command.Runs([&socket, name] { return Report("delete", Delete(socket, *name)); });
}

}  // namespace penstock::ctl
