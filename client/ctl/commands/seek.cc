// `penstock seek`: a running pipeline goes on at another position.

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/ctl/arguments/cursor_file.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/daemon/daemon_connection.h"

namespace penstock::ctl {
namespace {

struct SeekArguments {
  std::string name;
  std::string cursor;
  bool beginning = false;
  std::optional<uint64_t> step;
  std::string etag;
};

absl::Status Seek(const std::string& socket, const SeekArguments& arguments) {
  v1::SeekPipelineRequest request;
  request.set_name(arguments.name);
  request.set_etag(arguments.etag);
  if (arguments.step) request.set_step(*arguments.step);
  if (!arguments.beginning) {
    absl::StatusOr<std::string> cursor = ReadCursorFile(arguments.cursor);
    if (!cursor.ok()) return cursor.status();
    request.set_cursor(*std::move(cursor));
  }
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  const auto answer = daemon->Seek(request);
  if (!answer.ok()) return answer.status();
  std::printf("%s seeks from step %llu on (etag %s)\n", arguments.name.c_str(),
              static_cast<unsigned long long>(answer->change().step()), answer->etag().c_str());
  if (!answer->notice().empty())
    std::fprintf(stderr, "penstock seek: %s\n", answer->notice().c_str());
  return absl::OkStatus();
}

}  // namespace

void AddSeek(Command root, const std::string& socket) {
  Command command =
      root.AddCommand("seek", "Let a running pipeline go on at another position of its stream");
  auto arguments = std::make_shared<SeekArguments>();
  command.Add("NAME", &arguments->name, "The pipeline").Required();
  command.OneOf([&arguments](Command group) {
    group.Add("--cursor", &arguments->cursor, "File with a cursor of this pipeline");
    group.AddFlag("--beginning", &arguments->beginning, "At its beginning");
  });
  command.Add("--at-step", &arguments->step,
              "The first step that comes from there. Default: the earliest possible step");
  command.Add("--etag", &arguments->etag, "Only if nobody has changed the pipeline meanwhile");
  command.Runs([&socket, arguments] { return Report("seek", Seek(socket, *arguments)); });
}

}  // namespace penstock::ctl
