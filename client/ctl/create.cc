// `penstock create`: starts a pipeline in a running daemon.

#include <cstdio>
#include <memory>

#include "client/ctl/commands.h"
#include "client/ctl/cursor_file.h"
#include "client/ctl/daemon_connection.h"
#include "client/ctl/describe.h"
#include "client/ctl/history_file.h"
#include "client/ctl/needed_indices.h"
#include "client/ctl/spec_arguments.h"
#include "client/ctl/world_argument.h"

namespace penstock::ctl {
namespace {

struct CreateArguments {
  SpecArguments spec;
  std::string resume;
  bool allow_changed_work = false;
  std::string history;
  WorldArgument world;
};

absl::Status Create(const std::string& socket, const CreateArguments& arguments) {
  const auto source = arguments.spec.Read();
  if (!source.ok()) return source.status();
  std::string cursor;
  if (!arguments.resume.empty()) {
    absl::StatusOr<std::string> read = ReadCursorFile(arguments.resume);
    if (!read.ok()) return read.status();
    cursor = *std::move(read);
  }
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  // Files on other machines are looked up once.
  if (!ReadsOnlyAddresses(*source)) {
    const auto validated = daemon->Validate(*source, arguments.world);
    if (!validated.ok()) return validated.status();
    BuildNeededIndices(*validated);
  }
  v1::CreatePipelineRequest request;
  *request.mutable_source() = *source;
  request.set_cursor(cursor);
  arguments.world.AddTo(&request);
  request.set_allow_changed_work(arguments.allow_changed_work);
  if (!arguments.history.empty()) {
    const auto history = ReadHistoryFile(arguments.history);
    if (!history.ok()) return history.status();
    *request.mutable_history() = history->change();
  }
  const auto pipeline = daemon->Create(request);
  if (!pipeline.ok()) return pipeline.status();
  std::printf("created %s: %s a batch, %u slots\n%s", pipeline->name().c_str(),
              ByteCount(pipeline->slot_bytes()).c_str(), pipeline->slots(),
              DescribeElement(*pipeline).c_str());
  for (const std::string& notice : pipeline->notice())
    std::fprintf(stderr, "penstock create: %s\n", notice.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddCreate(Command root, const std::string& socket) {
  Command command = root.AddCommand("create", "Start a pipeline in the daemon under its name");
  auto arguments = std::make_shared<CreateArguments>();
  SpecArguments::Add(command, &arguments->spec);
  WorldArgument::AddFewest(command, WorldArgument::Add(command, &arguments->world),
                           &arguments->world);
  command.Add("--resume", &arguments->resume,
              "Cursor of the same spec and files (a trainer's state_dict()[\"cursor\"], or "
              "run's --cursor-out): the pipeline goes on after its batch");
  command.Add(
      "--history", &arguments->history,
      "File of `penstock history`: makes the changes of an earlier run again, at their steps");
  command.AddFlag("--allow-changed-work", &arguments->allow_changed_work,
                  "Take the cursor although work ops (map, parse_example) have changed since");
  command.Runs([&socket, arguments] { return Report("create", Create(socket, *arguments)); });
}

}  // namespace penstock::ctl
