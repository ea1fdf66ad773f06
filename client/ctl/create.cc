// `penstock create`: starts a pipeline in a running daemon.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "client/ctl/commands.h"
#include "client/ctl/daemon_connection.h"
#include "client/ctl/describe.h"
#include "client/ctl/spec_arguments.h"

namespace penstock::ctl {
namespace {

absl::Status Create(const std::string& socket, const SpecArguments& arguments) {
  const auto source = arguments.Read();
  if (!source.ok()) return source.status();
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  const auto pipeline = daemon->Create(*source);
  if (!pipeline.ok()) return pipeline.status();
  std::printf("created %s: %s a batch, %u slots\n%s", pipeline->name().c_str(),
              ByteCount(pipeline->slot_bytes()).c_str(), pipeline->slots(),
              DescribeElement(*pipeline).c_str());
  return absl::OkStatus();
}

}  // namespace

void AddCreate(CommandLine& line) {
  CLI::App* command =
      line.app.add_subcommand("create", "Start a pipeline in the daemon under its name");
  auto arguments = std::make_shared<SpecArguments>();
  SpecArguments::Add(command, arguments.get());
  command->callback(
      [&line, arguments] { line.exit_code = Report("create", Create(line.socket, *arguments)); });
}

}  // namespace penstock::ctl
