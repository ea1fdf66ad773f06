// `penstock pause`, `resume` and `drain`: a pipeline begins no further batch, and goes on.

#include <cstdio>
#include <memory>
#include <string>

#include "client/ctl/arguments/cursor_file.h"
#include "client/ctl/commands/commands.h"
#include "client/ctl/daemon/daemon_connection.h"

namespace penstock::ctl {
namespace {

struct DrainArguments {
  std::string name;
  double timeout_s = 60;
  std::string cursor_out;
};

absl::Status Pause(const std::string& socket, const std::string& name) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  absl::Status status = daemon->Pause(name);
  if (status.ok()) std::printf("paused %s\n", name.c_str());
  return status;
}

absl::Status Resume(const std::string& socket, const std::string& name) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  const absl::StatusOr<std::string> notice = daemon->Resume(name);
  if (!notice.ok()) return notice.status();
  std::printf("resumed %s\n", name.c_str());
  if (!notice->empty()) std::fprintf(stderr, "penstock resume: %s\n", notice->c_str());
  return absl::OkStatus();
}

absl::Status Drain(const std::string& socket, const DrainArguments& arguments) {
  auto daemon = DaemonConnection::Open(socket);
  if (!daemon.ok()) return daemon.status();
  v1::DrainPipelineRequest request;
  request.set_name(arguments.name);
  request.set_timeout_ms(static_cast<int>(arguments.timeout_s * 1000));
  const auto drained = daemon->Drain(request);
  if (!drained.ok()) return drained.status();
  std::printf("drained %s: step %llu is next\n", arguments.name.c_str(),
              static_cast<unsigned long long>(drained->step()));
  if (arguments.cursor_out.empty()) return absl::OkStatus();
  if (drained->cursor().empty()) return absl::OutOfRangeError("no cursor: there was no batch");
  return WriteCursorFile(arguments.cursor_out, drained->cursor());
}

void Add(Command root, const std::string& socket, const char* name, const char* help,
         absl::Status (*run)(const std::string& socket, const std::string& name)) {
  Command command = root.AddCommand(name, help);
  auto pipeline = std::make_shared<std::string>();
  command.Add("NAME", pipeline.get(), "The pipeline").Required();
  command.Runs([&socket, name, run, pipeline] { return Report(name, run(socket, *pipeline)); });
}

}  // namespace

void AddPause(Command root, const std::string& socket) {
  Add(root, socket, "pause", "Begin no further batch; consumers take those that are ready and wait",
      Pause);
}

void AddResume(Command root, const std::string& socket) {
  Add(root, socket, "resume", "Let a paused pipeline go on", Resume);
}

void AddDrain(Command root, const std::string& socket) {
  Command command =
      root.AddCommand("drain", "Pause, and wait until consumers have taken all that was ready");
  auto arguments = std::make_shared<DrainArguments>();
  command.Add("NAME", &arguments->name, "The pipeline").Required();
  command.Add("--timeout", &arguments->timeout_s, "Seconds to wait")
      .InRange(0.001, 600.0)
      .WithDefault();
  command.Add("--cursor-out", &arguments->cursor_out,
              "File for the cursor with which another pipeline goes on");
  command.Runs([&socket, arguments] { return Report("drain", Drain(socket, *arguments)); });
}

}  // namespace penstock::ctl
