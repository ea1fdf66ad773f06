// `penstock validate`: checks a spec and prints what its batches look like.

#include <cstdio>
#include <memory>

#include "client/ctl/arguments/spec_arguments.h"
#include "client/ctl/arguments/world_argument.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/daemon/daemon_connection.h"
#include "client/ctl/words/describe.h"

namespace penstock::ctl {
namespace {

absl::Status Validate(const std::string& socket, const SpecArguments& arguments,
                      const WorldArgument& world, bool explain) {
  const auto source = arguments.Read();
  if (!source.ok()) return source.status();
  auto daemon = DaemonConnection::OpenOrStart(socket);
  if (!daemon.ok()) return daemon.status();
  const auto answer = daemon->Validate(*source, world);
  if (!answer.ok()) return answer.status();
  std::printf("%s", DescribeElement(answer->pipeline()).c_str());
  std::printf("cursor: %s\n", answer->pipeline().cursor().c_str());
  if (explain) std::printf("\n%s", answer->explanation().c_str());
  return absl::OkStatus();
}

}  // namespace

void AddValidate(Command root, const std::string& socket) {
  Command command = root.AddCommand(
      "validate", "Check a spec and its files; print name, dtype and shape of each output");
  auto arguments = std::make_shared<SpecArguments>();
  auto world = std::make_shared<WorldArgument>();
  auto explain = std::make_shared<bool>(false);
  SpecArguments::Add(command, arguments.get());
  WorldArgument::Add(command, world.get());
  command.AddFlag("--explain", explain.get(), "Say also how it would run");
  command.Runs([&socket, arguments, world, explain] {
    return Report("validate", Validate(socket, *arguments, *world, *explain));
  });
}

}  // namespace penstock::ctl
