// `penstock delete`: stops a pipeline.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "client/ctl/commands.h"
#include "client/ctl/daemon_connection.h"

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

void AddDelete(CommandLine& line) {
  CLI::App* command =
      line.app.add_subcommand("delete", "Stop a pipeline; its consumers get NOT_FOUND");
  auto name = std::make_shared<std::string>();
  command->add_option("NAME", *name, "The pipeline")->required();
  command->callback(
      [&line, name] { line.exit_code = Report("delete", Delete(line.socket, *name)); });
}

}  // namespace penstock::ctl
