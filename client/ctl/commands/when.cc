// `penstock when`: which row of which step a record fills.

#include <cstdio>
#include <memory>

#include "client/ctl/arguments/spec_arguments.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/daemon/daemon_connection.h"

namespace penstock::ctl {
namespace {

struct WhenArguments {
  SpecArguments spec;
  std::string file;
  uint64_t offset = 0;
  uint64_t from_step = 0;
  uint64_t steps = 0;
};

absl::Status When(const std::string& socket, const WhenArguments& arguments) {
  auto source = arguments.spec.Read();
  if (!source.ok()) return source.status();
  auto daemon = DaemonConnection::OpenOrStart(socket);
  if (!daemon.ok()) return daemon.status();
  v1::FindRowRequest request;
  *request.mutable_source() = *std::move(source);
  request.set_file(arguments.file);
  request.set_offset(arguments.offset);
  request.set_first_step(arguments.from_step);
  request.set_steps(arguments.steps);
  const auto answer = daemon->FindRow(request);
  if (!answer.ok()) return answer.status();
  std::printf("epoch %llu, step %llu, row %u\n", static_cast<unsigned long long>(answer->epoch()),
              static_cast<unsigned long long>(answer->step()), answer->row());
  return absl::OkStatus();
}

}  // namespace

void AddWhen(Command root, const std::string& socket) {
  Command command = root.AddCommand("when", "Epoch, step and row that a record of a file fills");
  auto arguments = std::make_shared<WhenArguments>();
  SpecArguments::Add(command, &arguments->spec);
  command.Add("--file", &arguments->file, "The data file, or its name without folders").Required();
  command.Add("--offset", &arguments->offset, "Where the record begins in it").Required();
  command.Add("--from-step", &arguments->from_step, "The first step to search");
  command.Add("--steps", &arguments->steps, "How many steps to search (a million)");
  command.Runs([&socket, arguments] { return Report("when", When(socket, *arguments)); });
}

}  // namespace penstock::ctl
