// `penstock skipped`: the damaged places that a pipeline has passed over, a line each.

#include <cstdio>
#include <memory>
#include <string>

#include "client/ctl/commands/commands.h"
#include "client/ctl/daemon/daemon_connection.h"
#include "client/ctl/words/describe.h"

namespace penstock::ctl {
namespace {

absl::Status Skipped(const std::string& socket, const std::string& name) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  const auto answer = daemon->Skipped(name);
  if (!answer.ok()) return answer.status();
  PrintSkipped(*answer, stdout);
  return absl::OkStatus();
}

}  // namespace

void AddSkipped(Command root, const std::string& socket) {
  Command command = root.AddCommand("skipped", "The damaged places that a pipeline has skipped");
  auto name = std::make_shared<std::string>();
  command.Add("NAME", name.get(), "The pipeline").Required();
  command.Runs([&socket, name] { return Report("skipped", Skipped(socket, *name)); });
}

}  // namespace penstock::ctl
